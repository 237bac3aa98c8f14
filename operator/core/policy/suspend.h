#pragma once

#include "core/draft.h"

namespace core {

// spec.runPolicy.suspend of an unfinished job: every child goes, Suspended is true, startTime
// stays.
void Suspend(Draft* draft);

// The job goes on afresh with its current template: a new startTime, by which pods from before are
// known, no replica completed.
void Resume(Draft* draft);

}  // namespace core
