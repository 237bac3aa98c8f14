#include "core/policy/suspend.h"

#include <algorithm>

#include "core/conditions.h"
#include "core/counts.h"
#include "core/policy/autoscale.h"
#include "core/policy/gang.h"

namespace core {

void Suspend(Draft* draft) {
  JobStatus& status = draft->status;
  const std::string message = "PyTorchJob " + draft->name() + " is suspended.";
  RecordCreated(draft);
  if (!status.Is(kSuspended)) {
    Enter(&status, kSuspended, kReasonSuspended, message, draft->now);
    draft->events.push_back({false, kReasonSuspended, message});
  }
  Leave(&status, kReplicaFailure, kReasonSuspended, message, draft->now);
  draft->Because(message);
  for (const auto& pod : draft->snapshot.pods) draft->DeletePod(*pod);
  draft->DeleteServices();
  DropPodGroup(draft);
  DropAutoscaler(draft);
  std::erase_if(status.accounted, [&](const AccountedPod& accounted) {
    return std::none_of(draft->snapshot.pods.begin(), draft->snapshot.pods.end(),
                        [&](const auto& pod) { return pod->uid == accounted.uid; });
  });
  CountPods(draft->snapshot, Observe(draft->snapshot, status), &status);
}

void Resume(Draft* draft) {
  JobStatus& status = draft->status;
  const std::string message = "PyTorchJob " + draft->name() + " is resumed.";
  Leave(&status, kSuspended, kReasonResumed, message, draft->now);
  draft->events.push_back({false, kReasonResumed, message});
  draft->Because(message);
  TimePoint start = std::chrono::floor<seconds>(draft->now);
  // Suspended and resumed within one second: the start times must still differ.
  if (status.start_time) start = std::max(start, *status.start_time + seconds{1});
  status.start_time = start;
  for (auto& [type, replica] : status.replicas) replica.completed.clear();
}

}  // namespace core
