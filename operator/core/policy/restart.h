#pragma once

#include <optional>
#include <string>

#include "core/model.h"

namespace core {

// What a pod in phase Failed means for its job.
enum class Verdict {
  kFatal,      // the job fails
  kRetry,      // replaced, counts against backoffLimit
  kDisrupted,  // replaced, does not count: not the program's fault
};

// Not the program's fault: eviction, preemption, node shutdown or loss, the kubelet's refusals.
// Reasons are those that Kubernetes' components write (condition DisruptionTarget, status.reason).
bool Disrupted(const Pod& pod);

// Of the training container; if that ended with 0 or not at all, of the first other container that
// failed. None when no container ended with an error.
std::optional<Termination> FailedContainer(const Pod& pod, const std::string& training_container);

Verdict Judge(const Pod& pod, RestartPolicy policy, const std::string& training_container);

// Restarts of containers in place, init containers left out.
int Restarts(const Pod& pod);
// Containers that the kubelet holds back after a failure (CrashLoopBackOff, last exit code not 0).
int CrashLooping(const Pod& pod);

// When the pod ended: its last container's end; for a pod that left no trace of that, the last
// change of its conditions, else its creation. Never depends on the time of asking.
TimePoint EndOf(const Pod& pod);

// The number of a pod's successor in a row of replacements (1 = the first); a pod that ran for ten
// minutes starts anew.
int NextReplacement(const Pod& pod, TimePoint end);
// How long after its predecessor's end the k-th replacement may start: none, 10 s, 20 s, 40 s …
// 10 min. The numbers are those of batch/v1's Job controller.
seconds ReplacementDelay(int k);

// For status.lastFailure and messages.
LastFailure DescribeFailure(const Pod& pod, const std::string& training_container);
// "Pod mnist-worker-0 exited with code 137 (OOMKilled)."
std::string Sentence(const LastFailure& failure);

}  // namespace core
