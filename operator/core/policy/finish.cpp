#include "core/policy/finish.h"

#include <algorithm>

#include "core/conditions.h"
#include "core/counts.h"
#include "core/names.h"
#include "core/policy/autoscale.h"
#include "core/policy/gang.h"

namespace core {
namespace {

bool Succeeded(const JobSpec& spec, const Observation& seen) {
  auto completed = [](const Replica& replica) { return replica.completed; };
  if (spec.HasMaster()) {
    return std::any_of(seen.replicas.begin(), seen.replicas.end(), [](const Replica& replica) {
      return replica.type == ReplicaType::kMaster && replica.completed;
    });
  }
  if (seen.replicas.empty()) return false;
  return spec.elastic ? std::any_of(seen.replicas.begin(), seen.replicas.end(), completed)
                      : std::all_of(seen.replicas.begin(), seen.replicas.end(), completed);
}

const Replica* FirstWith(const Observation& seen, Verdict verdict) {
  for (const Replica& replica : seen.replicas) {
    if (replica.verdict == verdict && !replica.completed) return &replica;
  }
  return nullptr;
}

int CountWith(const Observation& seen, ReplicaType type, Verdict verdict) {
  return static_cast<int>(
      std::count_if(seen.replicas.begin(), seen.replicas.end(),
                    [&](const Replica& r) { return r.type == type && r.verdict == verdict; }));
}

LastFailure Describe(const Observation& seen, const Replica& replica) {
  return DescribeFailure(*replica.pod, seen.training_container.at(replica.type));
}

bool AlreadyCounted(const JobStatus& status, const std::string& uid) {
  return std::any_of(status.accounted.begin(), status.accounted.end(),
                     [&](const AccountedPod& pod) { return pod.uid == uid && pod.failed; });
}

// Failures so far: those that were retried, and those that ask for one more retry.
int Failures(const Draft& draft, const Observation& seen) {
  int fresh = 0, crash_looping = 0;
  for (const Replica& replica : seen.replicas) {
    if (replica.pod == nullptr || replica.Terminating() || replica.completed) continue;
    if (replica.verdict == Verdict::kRetry && !AlreadyCounted(draft.status, replica.pod->uid)) {
      ++fresh;
    }
    if (!replica.verdict) crash_looping += CrashLooping(*replica.pod);
  }
  // All failures of one attempt are one.
  if (draft.job.spec.run_policy.restart_scope == RestartScope::kJob) fresh = std::min(fresh, 1);
  return draft.status.restart_count + fresh + crash_looping;
}

std::string Because(const JobStatus& status) {
  return status.last_failure ? ". " + Sentence(*status.last_failure) : "";
}

}  // namespace

bool DecideOutcome(Draft* draft, const Observation& seen) {
  const JobSpec& spec = draft->job.spec;
  const RunPolicy& policy = spec.run_policy;
  const std::string& name = draft->name();
  if (Succeeded(spec, seen)) {
    End(draft, kSucceeded, kReasonSucceeded,
        spec.HasMaster()
            ? "PyTorchJob " + name + " is successfully completed."
            : "PyTorchJob " + draft->job.key.ns + "/" + name + " successfully completed.");
    return true;
  }
  if (const Replica* replica = FirstWith(seen, Verdict::kFatal)) {
    draft->status.last_failure = Describe(seen, *replica);
    End(draft, kFailed, kReasonFailed,
        "PyTorchJob " + name + " is failed because " +
            std::to_string(CountWith(seen, replica->type, Verdict::kFatal)) + " " +
            std::string(Name(replica->type)) + " replica(s) failed. " +
            Sentence(*draft->status.last_failure));
    return true;
  }
  if (policy.backoff_limit && Failures(*draft, seen) > *policy.backoff_limit) {
    if (const Replica* replica = FirstWith(seen, Verdict::kRetry)) {
      draft->status.last_failure = Describe(seen, *replica);
    }
    End(draft, kFailed, kReasonBackoff,
        "Job " + name + " has failed because it has reached the specified backoff limit" +
            Because(draft->status));
    return true;
  }
  if (policy.active_deadline && draft->status.start_time) {
    const TimePoint deadline = *draft->status.start_time + *policy.active_deadline;
    if (draft->now >= deadline) {
      End(draft, kFailed, kReasonDeadline,
          "Job " + name + " has failed because it was active longer than specified deadline");
      return true;
    }
    draft->LookAgain(deadline);
  }
  return false;
}

namespace {

bool Ended(const Pod& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

void CleanPods(Draft* draft, const Observation& seen) {
  const CleanPodPolicy policy = draft->job.spec.run_policy.clean_pod_policy;
  const bool failed = draft->status.Is(kFailed);
  const bool active_ones = policy == CleanPodPolicy::kAll || policy == CleanPodPolicy::kRunning ||
                           (policy == CleanPodPolicy::kNotSet && failed);
  for (const auto& pod : draft->snapshot.pods) {
    // Leftovers of a scale-down or a restart were on their way out before the end came.
    const bool leftover =
        std::find(seen.stale.begin(), seen.stale.end(), pod.get()) != seen.stale.end() ||
        std::find(seen.surplus.begin(), seen.surplus.end(), pod.get()) != seen.surplus.end();
    const bool wanted_gone = Ended(*pod) ? policy == CleanPodPolicy::kAll : active_ones || leftover;
    if (wanted_gone) draft->DeletePod(*pod);
  }
}

}  // namespace

void AfterEnd(Draft* draft) {
  JobStatus& status = draft->status;
  const Condition* end = status.Find(status.Is(kSucceeded) ? kSucceeded : kFailed);
  const std::string reason = end->reason, message = end->message;
  if (!status.completion_time) status.completion_time = end->last_transition;
  // training-operator left Restarting true beside the end.
  for (const char* type : {kRunning, kRestarting, kSuspended}) {
    const Condition* old = status.Find(type);
    if (old != nullptr && old->status) {
      const Condition left = *old;
      SetCondition(&status, type, false, left.reason, left.message, draft->now);
    }
  }
  Leave(&status, kReplicaFailure, reason, message, draft->now);
  status.accounted.clear();
  Observation seen = Observe(draft->snapshot, status);
  RecordCompleted(draft->job.spec, &seen, &status);
  CleanPods(draft, seen);
  if (!seen.AnyActive()) draft->DeleteServices();
  DropPodGroup(draft);
  DropAutoscaler(draft);
  CountPods(draft->snapshot, seen, &status);
  if (auto ttl = draft->job.spec.run_policy.ttl_after_finished) {
    const TimePoint at = *status.completion_time + *ttl;
    if (draft->now >= at) {
      draft->Because("ttlSecondsAfterFinished has passed");
      draft->DeleteJob();
    } else {
      draft->LookAgain(at);
    }
  }
}

}  // namespace core
