#pragma once

#include "core/draft.h"

namespace core {

// Ends the job if its pods, its backoffLimit or its deadline say so; true if it did. Needs
// RecordCompleted and AccountRestarts before it.
bool DecideOutcome(Draft* draft, const Observation& seen);

// What is left to do for a job that has ended, whichever way: pods by cleanPodPolicy, the Service,
// the job itself by ttlSecondsAfterFinished, counts.
void AfterEnd(Draft* draft);

}  // namespace core
