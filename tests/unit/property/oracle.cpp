#include "property/oracle.h"

#include <algorithm>

#include "core/names.h"

namespace model {
namespace {

using core::Job;
using core::JobSpec;
using core::JobStatus;
using core::Kind;
using core::Pod;
using core::PodPhase;
using core::Snapshot;

bool Ended(const Pod& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}
bool JobScope(const JobSpec& spec) {
  return spec.run_policy.restart_scope == core::RestartScope::kJob;
}
int InPlace(const Pod& pod) { return pod.containers.empty() ? 0 : pod.containers[0].restarts; }

}  // namespace

void Require(bool holds, const std::string& what) {
  if (!holds) throw Violation{what};
}

bool Current(const Pod& pod, const JobSpec& spec, const JobStatus& status) {
  if (pod.index < 0 || pod.index >= spec.Replicas(pod.type)) return false;
  if (!pod.incarnation.empty() && status.start_time &&
      pod.incarnation != core::FormatTime(*status.start_time)) {
    return false;
  }
  return !JobScope(spec) || pod.attempt >= status.attempt;
}

core::Verdict Oracle::VerdictOf(const Pod& pod, const JobSpec& spec) const {
  const PodFacts& facts = cluster_.facts.at(pod.uid);
  if (facts.cause == Cause::kDisruption) return core::Verdict::kDisrupted;
  switch (spec.replicas.at(pod.type).restart_policy) {
    case core::RestartPolicy::kNever:
      return core::Verdict::kFatal;
    case core::RestartPolicy::kExitCode:
      if (facts.cause == Cause::kNoCode || facts.exit_code >= 128) return core::Verdict::kRetry;
      return core::Verdict::kFatal;
    case core::RestartPolicy::kAlways:
    case core::RestartPolicy::kOnFailure:
      break;
  }
  return core::Verdict::kRetry;
}

void Oracle::Follow(const Snapshot& snapshot, const JobStatus& after, Truth* truth) const {
  const JobSpec& spec = snapshot.job->spec;
  const JobStatus& before = snapshot.job->status;
  auto succeeded = [&](const Pod& pod) {
    return pod.phase == PodPhase::kSucceeded && Current(pod, spec, after);
  };
  std::erase_if(truth->completed,
                [&](const Index& index) { return index.second >= spec.Replicas(index.first); });
  if (before.Finished()) {  // nothing is counted any more, but what runs on may still succeed
    for (const auto& pod : snapshot.pods) {
      if (succeeded(*pod)) truth->completed.insert({pod->type, pod->index});
    }
  }
  if (before.Finished() || spec.run_policy.suspend) return;
  if (before.start_time && before.start_time != after.start_time)
    truth->completed.clear();  // resumed
  if (after.attempt > before.attempt) {
    truth->completed.clear();
    const bool failure =
        std::any_of(snapshot.pods.begin(), snapshot.pods.end(), [&](const auto& pod) {
          JobStatus old = before;
          old.start_time = after.start_time;
          return Current(*pod, spec, old) && pod->phase == PodPhase::kFailed && !pod->deletion &&
                 VerdictOf(*pod, spec) == core::Verdict::kRetry;
        });
    if (failure) ++truth->restart_count;
  }
  for (const core::DepartedPod& gone : snapshot.departed) {
    if (succeeded(*gone.pod)) truth->completed.insert({gone.pod->type, gone.pod->index});
  }
  for (const auto& pod : snapshot.pods) {
    if (succeeded(*pod)) truth->completed.insert({pod->type, pod->index});
    if (!Current(*pod, spec, after) || pod->deletion) continue;
    Counted& counted = truth->counted[pod->uid];
    truth->restart_count += std::max(0, InPlace(*pod) - counted.restarts);
    counted.restarts = std::max(counted.restarts, InPlace(*pod));
    // A failure is counted when it is retried.
    if (pod->phase == PodPhase::kFailed && !counted.failed && !after.Finished() &&
        !JobScope(spec)) {
      counted.failed = true;
      if (VerdictOf(*pod, spec) == core::Verdict::kRetry) ++truth->restart_count;
    }
  }
}

int Oracle::Failures(const Snapshot& snapshot, const JobStatus& status, const Truth& truth) const {
  const JobSpec& spec = snapshot.job->spec;
  int fresh = 0, looping = 0;
  for (const auto& pod : snapshot.pods) {
    if (!Current(*pod, spec, status) || pod->deletion) continue;
    auto counted = truth.counted.find(pod->uid);
    if (pod->phase == PodPhase::kFailed) {
      if (VerdictOf(*pod, spec) == core::Verdict::kRetry &&
          (counted == truth.counted.end() || !counted->second.failed)) {
        ++fresh;
      }
    } else if (!pod->containers.empty() && pod->phase == PodPhase::kRunning) {
      const core::Container& container = pod->containers[0];
      looping += container.waiting_reason == "CrashLoopBackOff" && container.last_terminated &&
                 container.last_terminated->exit_code != 0;
    }
  }
  return truth.restart_count + (JobScope(spec) ? std::min(fresh, 1) : fresh) + looping;
}

bool Oracle::Succeeded(const JobSpec& spec, const Truth& truth) {
  if (spec.HasMaster()) return truth.completed.contains({core::ReplicaType::kMaster, 0});
  if (spec.elastic) return !truth.completed.empty();
  return static_cast<int>(truth.completed.size()) == spec.TotalReplicas();
}

const Pod* Oracle::Fatal(const Snapshot& snapshot, const JobStatus& status) const {
  for (const auto& pod : snapshot.pods) {
    if (Current(*pod, snapshot.job->spec, status) && pod->phase == PodPhase::kFailed &&
        !pod->deletion && VerdictOf(*pod, snapshot.job->spec) == core::Verdict::kFatal) {
      return pod.get();
    }
  }
  return nullptr;
}

void Oracle::OnAction(const Snapshot& snapshot, const JobStatus& status, const core::Action& action,
                      TimePoint now) {
  const JobSpec& spec = snapshot.job->spec;
  const bool suspend = spec.run_policy.suspend;
  if (const auto* create = std::get_if<core::Create>(&action)) {
    Require(!status.Finished(), "a finished job creates " + create->name);
    Require(!suspend, "a suspended job creates " + create->name);
    for (const core::Holder& holder : snapshot.holders) {
      Require(holder.kind != create->kind || holder.name != create->name,
              "created although held: " + create->name);
    }
    if (create->kind == Kind::kPod) OnCreatePod(snapshot, status, *create);
    if (create->kind == Kind::kService) {
      for (const auto& service : snapshot.services) {
        Require(service->name != create->name, "Service exists already: " + create->name);
      }
    }
  } else if (const auto* gone = std::get_if<core::Delete>(&action)) {
    if (gone->kind == Kind::kPod) return OnDeletePod(snapshot, status, *gone, now);
    if (gone->kind == Kind::kJob) {
      const auto ttl = spec.run_policy.ttl_after_finished;
      Require(status.Finished() && ttl && now >= *status.completion_time + *ttl,
              "the job is deleted before its ttl");
      return;
    }
    const bool owned = std::any_of(snapshot.services.begin(), snapshot.services.end(),
                                   [&](const auto& service) { return service->uid == gone->uid; });
    Require(owned, "deletes a foreign Service " + gone->name);
    auto replica = core::ParsePodName(kJobName, gone->name);
    const bool surplus = replica && replica->index >= spec.Replicas(replica->type);
    Require(surplus || suspend || status.Finished(), "deletes a needed Service " + gone->name);
  } else if (const auto* patch = std::get_if<core::Patch>(&action)) {
    const bool owned = std::any_of(snapshot.pods.begin(), snapshot.pods.end(),
                                   [&](const auto& pod) { return pod->name == patch->name; });
    Require(owned, "patches a foreign pod " + patch->name);
  }
}

void Oracle::OnCreatePod(const Snapshot& snapshot, const JobStatus& status,
                         const core::Create& create) {
  const Job& job = *snapshot.job;
  auto replica = core::ParsePodName(kJobName, create.name);
  Require(replica && replica->index < job.spec.Replicas(replica->type),
          "creates a pod that is not wanted: " + create.name);
  for (const auto& pod : snapshot.pods) {
    Require(pod->name != create.name, "pod exists already: " + create.name);
  }
  Require(!truths_[job.uid].completed.contains({replica->type, replica->index}),
          "a completed replica runs again: " + create.name);
  const Pod pod = core::DecodePod(create.body).value();
  Require(pod.name == create.name && pod.ns == kNamespace && pod.owner_uid == job.uid &&
              pod.labels_intact && pod.index == replica->index && pod.type == replica->type,
          "the body of " + create.name + " is another pod's");
  Require(Current(pod, job.spec, status) && !pod.incarnation.empty() &&
              (!JobScope(job.spec) || pod.attempt == status.attempt),
          "is stale when it is made: " + create.name);
}

void Oracle::OnDeletePod(const Snapshot& snapshot, const JobStatus& status,
                         const core::Delete& action, TimePoint now) const {
  const JobSpec& spec = snapshot.job->spec;
  const Pod* pod = nullptr;
  for (const auto& candidate : snapshot.pods) {
    if (candidate->uid == action.uid && candidate->name == action.name) pod = candidate.get();
  }
  Require(pod != nullptr, "deletes a foreign pod " + action.name);
  if (pod->deletion) {
    Require(action.grace_seconds == 0 && now >= *pod->deletion + seconds{300} &&
                snapshot.nodes.contains(pod->node) &&
                snapshot.nodes.at(pod->node) != core::NodeState::kHealthy,
            "deletes a terminating pod again: " + action.name);
    return;
  }
  if (spec.run_policy.suspend && !status.Finished()) return;
  if (!Current(*pod, spec, status)) return;
  if (!status.Finished()) {
    Require(pod->phase == PodPhase::kFailed, "deletes a healthy pod " + action.name);
    // Counted first, or a crash now would forget it.
    const bool counted = std::any_of(
        status.accounted.begin(), status.accounted.end(),
        [&](const core::AccountedPod& entry) { return entry.uid == pod->uid && entry.failed; });
    Require(counted, "deletes a failed pod before it is counted: " + action.name);
    return;
  }
  const auto clean = spec.run_policy.clean_pod_policy;
  if (clean == core::CleanPodPolicy::kAll) return;
  Require(!Ended(*pod) && (clean == core::CleanPodPolicy::kRunning ||
                           (clean == core::CleanPodPolicy::kNotSet && status.Is("Failed"))),
          "deletes a pod against cleanPodPolicy: " + action.name);
}

void Oracle::OnStatus(const Snapshot& snapshot, const Job& after, const core::WriteStatus& write,
                      TimePoint now) {
  const JobStatus& before = snapshot.job->status;
  Truth& truth = truths_[after.uid];
  CheckConditions(before, after.status);
  Follow(snapshot, after.status, &truth);
  Require(after.status.restart_count == truth.restart_count,
          "restartCount is " + std::to_string(after.status.restart_count) + ", must be " +
              std::to_string(truth.restart_count));
  for (core::Transition transition : write.transitions) {
    if (transition == core::Transition::kRestarted) continue;
    Require(++truth.transitions[transition] == 1, "a transition is counted twice");
  }
  for (const auto& [type, spec] : after.spec.replicas) {
    auto replica = after.status.replicas.find(type);
    Require(replica != after.status.replicas.end() && !replica->second.selector.empty(),
            "replicaStatuses lacks " + std::string(core::Name(type)));
    if (after.spec.run_policy.suspend) continue;
    for (int index = 0; index < spec.replicas; ++index) {
      Require(replica->second.completed.contains(index) == truth.completed.contains({type, index}),
              "completedIndexes is wrong about " + core::PodName(kJobName, type, index));
    }
  }
  Require(after.status.Finished() == after.status.completion_time.has_value(),
          "completionTime without an end, or the reverse");
  Require(!before.Finished() || before.completion_time == after.status.completion_time,
          "completionTime has changed");
  if (before.start_time && before.start_time != after.status.start_time) {
    Require(before.Is("Suspended") && !after.status.Is("Suspended"),
            "startTime changes without a resume");
  }
  if (!before.Finished() && after.status.Finished()) CheckEnd(snapshot, after, truth, now);
  const auto limit = after.spec.run_policy.backoff_limit;
  if (limit && !after.status.Finished() && !after.spec.run_policy.suspend) {
    Require(truth.restart_count <= *limit, "more retries than backoffLimit");
  }
}

void Oracle::CheckEnd(const Snapshot& snapshot, const Job& after, const Truth& truth,
                      TimePoint now) const {
  const bool success = Succeeded(after.spec, truth);
  if (after.status.Is("Succeeded")) return Require(success, "Succeeded without success");
  Require(!success, "Failed although it has succeeded");
  const std::string reason = after.status.Find("Failed")->reason;
  if (reason == "PyTorchJobFailed") {
    Require(Fatal(snapshot, after.status) != nullptr, "Failed without a fatal failure");
  } else if (reason == "BackoffLimitExceeded") {
    const auto limit = after.spec.run_policy.backoff_limit;
    Require(limit && Failures(snapshot, after.status, truth) > *limit,
            "Failed before backoffLimit was exceeded");
  } else if (reason == "DeadlineExceeded") {
    const auto deadline = after.spec.run_policy.active_deadline;
    Require(deadline && now >= *after.status.start_time + *deadline, "Failed before the deadline");
  } else {
    Require(false, "Failed with reason " + reason);
  }
}

}  // namespace model
