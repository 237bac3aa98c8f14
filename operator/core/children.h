#pragma once

#include "core/draft.h"

namespace core {

// Services and pods that an active job lacks, in the order Service, master, workers; nothing whose
// name is taken, whose delay has not passed, or whose last try failed a moment ago. What keeps a
// child from being made becomes the condition ReplicaFailure.
void WantChildren(Draft* draft, const Observation& seen);

// How long after the n-th failed create of an object the next try comes.
seconds CreateRetryDelay(base::ErrorCode code, int tries);

}  // namespace core
