#include "core/policy/replace.h"

#include <algorithm>

#include "core/conditions.h"
#include "core/counts.h"
#include "core/names.h"

namespace core {
namespace {

constexpr seconds kNodeLookInterval{30};

bool JobScope(const Job& job) { return job.spec.run_policy.restart_scope == RestartScope::kJob; }

LastFailure Describe(const Observation& seen, const Replica& replica) {
  return DescribeFailure(*replica.pod, seen.training_container.at(replica.type));
}

// The latest failure stays.
void Note(JobStatus* status, LastFailure failure) {
  if (status->last_failure && status->last_failure->time > failure.time) return;
  status->last_failure = std::move(failure);
}

std::string Why(const Observation& seen, const Replica& replica) {
  if (replica.verdict) return Sentence(Describe(seen, replica));
  return "Pod " + replica.name + (replica.pod != nullptr ? " is being deleted." : " was deleted.");
}

void StartRestarting(Draft* draft, const Replica& first, int count, const std::string& why) {
  const std::string message = "PyTorchJob " + draft->name() + " is restarting because " +
                              std::to_string(count) + " " + std::string(Name(first.type)) +
                              " replica(s) failed. " + why;
  const bool already = draft->status.Is(kRestarting);
  Enter(&draft->status, kRestarting, kReasonRestarting, message, draft->now);
  if (!already) draft->transitions.push_back(Transition::kRestarted);
  draft->events.push_back({true, kReasonRestarting, Truncated(message, 1000)});
  draft->Because(message);
}

int CountLike(const std::vector<const Replica*>& lost, ReplicaType type) {
  return static_cast<int>(
      std::count_if(lost.begin(), lost.end(), [&](const Replica* r) { return r->type == type; }));
}

// A replica that ran when the status was last written and left no trace: it went while no operator
// looked.
bool LostUnseen(const Job& job, const Replica& replica) {
  if (replica.pod != nullptr || replica.stale != nullptr || replica.completed) return false;
  const std::string wanted = std::to_string(job.spec.TotalReplicas());
  return job.status.summary == wanted + "/" + wanted &&
         job.status.observed_generation == job.generation;
}

// One attempt ends for all pods as soon as one of them is lost.
bool NewAttempt(Draft* draft, const Observation& seen) {
  std::vector<const Replica*> lost;
  const Replica* failed = nullptr;
  const Replica* disrupted = nullptr;
  for (const Replica& replica : seen.replicas) {
    if (replica.completed) continue;
    const bool gone = replica.Vanishing() || LostUnseen(draft->job, replica);
    if (!replica.verdict && !gone) continue;
    lost.push_back(&replica);
    if (failed == nullptr && replica.verdict == Verdict::kRetry) failed = &replica;
    if (disrupted == nullptr && replica.verdict == Verdict::kDisrupted) disrupted = &replica;
  }
  if (lost.empty()) return false;
  JobStatus& status = draft->status;
  ++status.attempt;
  if (failed != nullptr) ++status.restart_count;
  const Replica& first = failed != nullptr ? *failed : disrupted != nullptr ? *disrupted : *lost[0];
  if (first.verdict) Note(&status, Describe(seen, first));
  for (auto& [type, replica] : status.replicas) replica.completed.clear();
  status.accounted.clear();
  StartRestarting(draft, first, CountLike(lost, first.type), Why(seen, first));
  return true;
}

// The end of an earlier attempt and the number that the next one has in a row.
Turn NextAttempt(const Observation& seen) {
  std::optional<TimePoint> end;
  int replacement = 0;
  bool ran_long = false;
  auto add = [&](const Pod& pod, TimePoint pod_end) {
    if (!end || pod_end > *end) end = pod_end;
    replacement = std::max(replacement, pod.replacement);
    ran_long = ran_long || NextReplacement(pod, pod_end) <= pod.replacement;
  };
  for (const Pod* pod : seen.stale) {
    if (pod->phase == PodPhase::kFailed || pod->phase == PodPhase::kSucceeded) {
      add(*pod, EndOf(*pod));
    }
  }
  for (const DepartedPod* gone : seen.stale_departed) {
    add(*gone->pod, std::min(EndOf(*gone->pod), gone->gone));
  }
  const int k = ran_long ? 1 : replacement + 1;
  return {end ? *end + ReplacementDelay(k) : TimePoint::min(), k};
}

}  // namespace

bool Replace(Draft* draft, const Observation& seen) {
  if (JobScope(draft->job)) return NewAttempt(draft, seen);
  JobStatus& status = draft->status;
  std::vector<const Replica*> fresh;
  for (const Replica& replica : seen.replicas) {
    if (replica.completed) continue;
    if (!replica.verdict) {
      if (replica.Vanishing() && !status.Is(kRestarting)) fresh.push_back(&replica);
      continue;
    }
    AccountedPod* accounted = Account(&status, replica.pod->uid);
    if (accounted == nullptr) continue;  // the list is full: not replaced until there is room
    if (!accounted->failed) {
      accounted->failed = true;
      if (replica.verdict == Verdict::kRetry) ++status.restart_count;
      Note(&status, Describe(seen, replica));
      fresh.push_back(&replica);
    }
    const TimePoint end = EndOf(*replica.pod);
    const TimePoint at = end + ReplacementDelay(NextReplacement(*replica.pod, end));
    if (draft->now >= at) {
      draft->DeletePod(*replica.pod);
    } else {
      draft->LookAgain(at);
    }
  }
  if (!fresh.empty()) {
    const Replica& first = *fresh.front();
    StartRestarting(draft, first, CountLike(fresh, first.type), Why(seen, first));
  }
  return false;
}

void DeleteStale(Draft* draft, const Observation& seen) {
  for (const Pod* pod : seen.surplus) draft->DeletePod(*pod);
  const bool attempts = JobScope(draft->job);
  const Turn turn = attempts ? NextAttempt(seen) : Turn{};
  for (const Pod* pod : seen.stale) {
    const bool ended = pod->phase == PodPhase::kFailed || pod->phase == PodPhase::kSucceeded;
    const bool earlier_attempt = pod->attempt < draft->status.attempt;
    if (attempts && earlier_attempt && ended && draft->now < turn.at) {
      draft->LookAgain(turn.at);
    } else {
      draft->DeletePod(*pod);
    }
  }
}

Turn NextTurn(const Draft& draft, const Observation& seen, const Replica& replica) {
  // Without a trace of a predecessor it is the first pod, or counting starts anew.
  const Turn anew{TimePoint::min(), draft.status.Is(kRestarting) ? 1 : 0};
  if (JobScope(draft.job)) {
    return seen.stale.empty() && seen.stale_departed.empty() ? anew : NextAttempt(seen);
  }
  if (replica.departed == nullptr) return anew;
  const Pod& pod = *replica.departed->pod;
  const TimePoint end =
      pod.phase == PodPhase::kFailed ? EndOf(pod) : std::max(EndOf(pod), replica.departed->gone);
  const int k = NextReplacement(pod, end);
  return {end + ReplacementDelay(k), k};
}

void UpdateProgress(Draft* draft, const Observation& seen) {
  JobStatus& status = draft->status;
  const Job& job = draft->job;
  bool replacing = !seen.stale_departed.empty() && JobScope(job) && status.Is(kRestarting);
  bool any_runs = false, any_completed = false, master_runs = false, master_unknown = false;
  for (const Replica& replica : seen.replicas) {
    const bool runs = replica.Runs() && !replica.Terminating();
    any_runs = any_runs || runs;
    any_completed = any_completed || replica.completed;
    if (replica.type == ReplicaType::kMaster) {
      master_runs = runs;
      master_unknown = replica.pod != nullptr && replica.pod->phase == PodPhase::kUnknown;
    }
    if (replica.completed) continue;
    const bool old_attempt = replica.stale != nullptr && JobScope(job);
    const bool comes_back = replica.pod != nullptr && replica.pod->replacement > 0 && !runs;
    const bool missing = replica.pod == nullptr && status.Is(kRestarting);
    replacing =
        replacing || replica.verdict || replica.Vanishing() || old_attempt || comes_back || missing;
  }
  const bool has_master = job.spec.HasMaster();
  if (has_master ? master_runs : any_runs) {
    if (!replacing && !status.Is(kRunning)) {
      Enter(&status, kRunning, kReasonRunning,
            "PyTorchJob " + (has_master ? job.key.name : job.key.ns + "/" + job.key.name) +
                " is running.",
            draft->now);
      draft->Because("the job runs");
    }
    return;
  }
  // What ran is gone, and nothing that is still there says why: it went while no operator looked.
  if (status.Is(kRunning) && !replacing && !master_unknown && (has_master || !any_completed)) {
    for (const Replica& replica : seen.replicas) {
      if (replica.completed || replica.pod != nullptr) continue;
      StartRestarting(draft, replica, 1, "Pod " + replica.name + " is gone.");
      return;
    }
  }
}

void DeleteStuck(Draft* draft) {
  const seconds timeout = draft->options.stuck_pod_timeout;
  if (timeout == seconds{0}) return;
  for (const auto& pod : draft->snapshot.pods) {
    if (!pod->deletion || pod->forced || pod->node.empty()) continue;
    const TimePoint at = *pod->deletion + timeout;
    if (draft->now < at) {
      draft->LookAgain(at);
      continue;
    }
    auto node = draft->snapshot.nodes.find(pod->node);
    if (node == draft->snapshot.nodes.end()) {
      draft->AskNode(pod->node);
    } else if (node->second != NodeState::kHealthy) {
      draft->Because("pod " + pod->name + " is stuck on dead node " + pod->node);
      draft->DeletePod(*pod, 0);
    }
    draft->LookAgain(draft->now + kNodeLookInterval);
  }
}

}  // namespace core
