#include "core/plan.h"

#include "core/children.h"
#include "core/conditions.h"
#include "core/counts.h"
#include "core/draft.h"
#include "core/manifest.h"
#include "core/policy/finish.h"
#include "core/policy/replace.h"
#include "core/policy/suspend.h"

namespace core {
namespace {

constexpr char kOwnManager[] = "kubeflow.org/training-operator";

// Labels that somebody changed are put back, or the watch would lose sight of the pod.
void RepairLabels(Draft* draft) {
  for (const auto& pod : draft->snapshot.pods) {
    if (pod->labels_intact || pod->deletion || pod->index < 0) continue;
    draft->Because("labels of pod " + pod->name + " were changed");
    draft->PatchPod(pod->name, LabelPatch(draft->job, pod->type, pod->index));
  }
}

// In-place restarts leave only the last termination of a container behind.
void NoteLastTermination(const Observation& seen, JobStatus* status) {
  for (const Replica& replica : seen.replicas) {
    if (replica.pod == nullptr || replica.Terminating()) continue;
    for (const Container& container : replica.pod->containers) {
      const auto& last = container.last_terminated;
      if (container.init || !last || last->exit_code == 0 || !last->finished) continue;
      const TimePoint time = std::chrono::floor<seconds>(*last->finished);
      if (status->last_failure && time <= status->last_failure->time) continue;
      status->last_failure = LastFailure{replica.name,  std::string(Name(replica.type)),
                                         replica.index, last->exit_code,
                                         last->reason,  last->message,
                                         time};
    }
  }
}

void NoteWaiting(Draft* draft) {
  const auto& now = draft->status.waiting;
  const auto& old = draft->job.status.waiting;
  if (!now || (old && old->pod == now->pod && old->reason == now->reason)) return;
  draft->events.push_back(
      {true, now->reason,
       "Pod " + now->pod + " is waiting" + (now->message.empty() ? "" : ": " + now->message)});
}

void Run(Draft* draft) {
  JobStatus& status = draft->status;
  RecordCreated(draft);
  if (status.Is(kSuspended)) Resume(draft);
  if (!status.start_time) status.start_time = std::chrono::floor<seconds>(draft->now);
  Observation seen = Observe(draft->snapshot, status);
  RecordCompleted(draft->job.spec, &seen, &status);
  AccountRestarts(seen, &status);
  NoteLastTermination(seen, &status);
  if (DecideOutcome(draft, seen)) {
    CountPods(draft->snapshot, seen, &status);
    AfterEnd(draft);
    return;
  }
  if (Replace(draft, seen)) {
    seen = Observe(draft->snapshot, status);
    RecordCompleted(draft->job.spec, &seen, &status);
  }
  DeleteStale(draft, seen);
  UpdateProgress(draft, seen);
  WantChildren(draft, seen);
  CountPods(draft->snapshot, seen, &status);
  NoteWaiting(draft);
}

}  // namespace

Plan Decide(const Snapshot& snapshot, TimePoint now, const Options& options) {
  const Job& job = *snapshot.job;
  const auto& manager = job.spec.run_policy.managed_by;
  // Nothing at all, not even conditions in another order than ours.
  if (job.deleting) return {{}, {}, {}, "the job is being deleted"};
  if (manager && *manager != kOwnManager) return {{}, {}, {}, "managed by " + *manager};
  Draft draft(snapshot, now, options);
  if (draft.status.Finished()) {
    AfterEnd(&draft);
  } else if (!job.errors.empty()) {
    RecordCreated(&draft);
    End(&draft, kFailed, kReasonValidation,
        "PyTorchJob failed validation because " + Describe(job.errors));
    AfterEnd(&draft);
  } else if (job.spec.run_policy.suspend) {
    Suspend(&draft);
  } else {
    Run(&draft);
  }
  DeleteStuck(&draft);
  RepairLabels(&draft);
  return draft.Finish();
}

}  // namespace core
