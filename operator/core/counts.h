#pragma once

#include "core/observe.h"
#include "core/plan.h"

namespace core {

// Fills what the status says of pods as they are: replicaStatuses, summary, waiting,
// observedGeneration. `status` must have its terminal and Suspended conditions already.
void CountPods(const Snapshot& snapshot, const Observation& seen, JobStatus* status);

// Adds in-place restarts that are not yet counted to status->restart_count and forgets pods that
// are gone. Pods that terminate or are surplus never count. At most kMaxAccounted entries.
inline constexpr size_t kMaxAccounted = 500;
void AccountRestarts(const Observation& seen, JobStatus* status);
// The entry of a pod; a new one if there is room, else nullptr.
AccountedPod* Account(JobStatus* status, const std::string& uid);

}  // namespace core
