#include <algorithm>

#include "core/names.h"
#include "property/oracle.h"

namespace model {
namespace {

using core::JobSpec;
using core::JobStatus;
using core::Kind;
using core::Pod;
using core::PodPhase;
using core::Snapshot;

bool Ended(const Pod& pod) {
  return pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
}

bool IsExclusive(const std::string& type) {
  return type == "Running" || type == "Restarting" || type == "Suspended" || type == "Succeeded" ||
         type == "Failed";
}

const Pod* Find(const Snapshot& snapshot, const std::string& name) {
  for (const auto& pod : snapshot.pods) {
    if (pod->name == name) return pod.get();
  }
  return nullptr;
}

}  // namespace

void CheckConditions(const JobStatus& before, const JobStatus& after) {
  const auto& conditions = after.conditions;
  Require(!conditions.empty() && conditions.back().status, "the last condition is not True");
  int exclusive = 0;
  bool is_false_after_true = false;
  for (size_t i = 0; i < conditions.size(); ++i) {
    const core::Condition& condition = conditions[i];
    if (IsExclusive(condition.type)) {
      exclusive += condition.status;
      is_false_after_true = is_false_after_true || (exclusive > 0 && !condition.status);
    }
    if (condition.type == "Succeeded" || condition.type == "Failed") {
      Require(condition.status, condition.type + " is written False");
    }
    for (size_t j = 0; j < i; ++j) {
      Require(conditions[j].type != condition.type, "two conditions " + condition.type);
    }
    if (condition.type == "ReplicaFailure" && (exclusive > 0 || condition.status)) {
      Require(i > 0 && conditions[i - 1].type == "Created", "ReplicaFailure is not after Created");
    }
  }
  Require(exclusive <= 1, "two of the exclusive conditions are True");
  Require(!is_false_after_true, "a False condition comes after the True one");
  const core::Condition* created = after.Find("Created");
  Require(created != nullptr && created->status, "Created is not True");
  if (exclusive == 1) {
    Require(conditions.front().type == "Created", "Created is not first");
    Require(IsExclusive(conditions.back().type), "the last condition is not the state");
  } else {
    const bool obstructed = after.Is("ReplicaFailure");
    const size_t last = conditions.size() - 1;
    Require(conditions[obstructed ? last - 1 : last].type == "Created", "Created is not last");
  }
  for (const char* end : {"Succeeded", "Failed"}) {
    const core::Condition* old = before.Find(end);
    if (old == nullptr) continue;
    const core::Condition* now = after.Find(end);
    Require(now != nullptr && *now == *old, std::string(end) + " has changed");
  }
  for (const core::Condition& old : before.conditions) {
    const core::Condition* now = after.Find(old.type);
    Require(now != nullptr, "condition " + old.type + " has vanished");
    Require((now->last_transition == old.last_transition) || now->status != old.status,
            "lastTransitionTime of " + old.type + " moves without a transition");
  }
}

void Oracle::OnSettled(const Snapshot& snapshot, std::optional<TimePoint> timer,
                       TimePoint now) const {
  const core::Job& job = *snapshot.job;
  const JobStatus& status = job.status;
  auto known = truths_.find(job.uid);
  Truth truth = known == truths_.end() ? Truth{} : known->second;
  Follow(snapshot, status, &truth);
  Require(truth.restart_count == status.restart_count,
          "restartCount stays " + std::to_string(status.restart_count) + ", must be " +
              std::to_string(truth.restart_count));
  Require(status.observed_generation == job.generation, "observedGeneration is behind");
  for (const auto& pod : snapshot.pods) {
    Require(pod->labels_intact || pod->deletion, "labels are not put back: " + pod->name);
    if (pod->deletion && !pod->node.empty()) {
      Require(timer.has_value(), "no timer for a pod that may be stuck: " + pod->name);
    }
  }
  const bool counts_may_lag = timer && *timer <= now + seconds{1};
  for (const auto& [type, replica] : status.replicas) {
    const int running = static_cast<int>(
        std::count_if(snapshot.pods.begin(), snapshot.pods.end(), [&, t = type](const auto& pod) {
          return pod->type == t && pod->phase == PodPhase::kRunning;
        }));
    Require(counts_may_lag || status.Is("Suspended") || replica.active == running,
            "active is " + std::to_string(replica.active) + ", must be " + std::to_string(running));
  }
  if (status.Finished()) return SettledFinished(snapshot, timer);
  if (job.spec.run_policy.suspend) return SettledSuspended(snapshot, counts_may_lag);
  SettledActive(snapshot, truth, timer, now);
  SettledObstacles(snapshot, truth, timer);
}

void Oracle::SettledActive(const Snapshot& snapshot, const Truth& truth,
                           std::optional<TimePoint> timer, TimePoint now) const {
  const JobSpec& spec = snapshot.job->spec;
  const JobStatus& status = snapshot.job->status;
  Require(status.start_time.has_value(), "no startTime");
  Require(!Succeeded(spec, truth), "the job has succeeded and does not say so");
  Require(Fatal(snapshot, status) == nullptr, "a fatal failure does not end the job");
  if (auto limit = spec.run_policy.backoff_limit) {
    Require(Failures(snapshot, status, truth) <= *limit, "backoffLimit does not end the job");
  }
  if (auto deadline = spec.run_policy.active_deadline) {
    const TimePoint at = *status.start_time + *deadline;
    Require(now < at, "the deadline has passed");
    Require(timer && *timer <= at, "no timer for the deadline");
  }
  bool all_run = true;
  for (const auto& [type, replica] : spec.replicas) {
    for (int index = 0; index < replica.replicas; ++index) {
      const Pod* pod = Find(snapshot, core::PodName(kJobName, type, index));
      if (truth.completed.contains({type, index})) continue;
      if (pod == nullptr || pod->phase != PodPhase::kRunning || pod->deletion) all_run = false;
      if (pod != nullptr && pod->phase == PodPhase::kFailed && !pod->deletion) {
        Require(timer.has_value(), "no timer to replace " + pod->name);
      }
    }
  }
  for (const auto& pod : snapshot.pods) {
    if (Current(*pod, spec, status) || pod->deletion) continue;
    Require(Ended(*pod) && timer && spec.run_policy.restart_scope == core::RestartScope::kJob,
            "is not wanted and stays: " + pod->name);
  }
  const Pod* master = Find(snapshot, core::PodName(kJobName, core::ReplicaType::kMaster, 0));
  if (spec.HasMaster() && status.Is("Running")) {
    Require(master != nullptr && master->phase == PodPhase::kRunning && !master->deletion,
            "Running, but the Master does not run");
  }
  if (all_run) Require(status.Is("Running"), "all run, but the job is not Running");
  Require(!status.Is("Suspended"), "Suspended although it is not");
}

// What is missing must be held up by something that wakes the operator.
void Oracle::SettledObstacles(const Snapshot& snapshot, const Truth& truth,
                              std::optional<TimePoint> timer) const {
  const core::Job& job = *snapshot.job;
  auto held = [&](Kind kind, const std::string& name) {
    return std::any_of(
        snapshot.holders.begin(), snapshot.holders.end(),
        [&](const core::Holder& holder) { return holder.kind == kind && holder.name == name; });
  };
  const bool each = job.spec.elastic.has_value() || cluster_.service_per_replica;
  const std::string host = core::PodName(kJobName, core::RendezvousType(job.spec), 0);
  bool missing = false, service_held = false, pod_held = false, service_missing = false;
  for (const auto& [type, replica] : job.spec.replicas) {
    for (int index = 0; index < replica.replicas; ++index) {
      const std::string name = core::PodName(kJobName, type, index);
      if (each || name == host) {
        const bool exists = std::any_of(snapshot.services.begin(), snapshot.services.end(),
                                        [&](const auto& service) { return service->name == name; });
        if (!exists) {
          service_missing = true;
          service_held = service_held || held(Kind::kService, name);
        }
      }
      if (truth.completed.contains({type, index}) || Find(snapshot, name) != nullptr) continue;
      missing = true;
      pod_held = pod_held || held(Kind::kPod, name);
    }
  }
  Require(!service_missing || service_held || timer, "a Service is missing and nothing is due");
  const bool stale = std::any_of(snapshot.pods.begin(), snapshot.pods.end(), [&](const auto& pod) {
    return !Current(*pod, job.spec, job.status);
  });
  Require(!missing || pod_held || service_held || stale || timer,
          "a pod is missing and nothing is due");
  const bool obstructed = job.status.Is("ReplicaFailure");
  if (service_held || (pod_held && !service_missing && !stale)) {
    Require(obstructed, "a taken name is not in the status");
  }
  if (!missing && !service_missing) {
    Require(!obstructed, "ReplicaFailure stays although nothing is missing");
  }
}

void Oracle::SettledSuspended(const Snapshot& snapshot, bool counts_may_lag) const {
  const JobStatus& status = snapshot.job->status;
  Require(status.Is("Suspended"), "suspended, but the status does not say so");
  Require(!status.Is("ReplicaFailure"), "ReplicaFailure while suspended");
  Require(snapshot.services.empty(), "a Service outlives the suspension");
  int active = 0;
  for (const auto& [type, replica] : status.replicas) active += replica.active;
  for (const auto& pod : snapshot.pods) {
    Require(pod->deletion.has_value(), "a pod outlives the suspension: " + pod->name);
  }
  Require(counts_may_lag || !snapshot.pods.empty() || active == 0,
          "active is not 0 without any pod");
}

void Oracle::SettledFinished(const Snapshot& snapshot, std::optional<TimePoint> timer) const {
  const JobSpec& spec = snapshot.job->spec;
  const JobStatus& status = snapshot.job->status;
  if (auto ttl = spec.run_policy.ttl_after_finished) {
    Require(timer && *timer <= *status.completion_time + *ttl, "no timer for the ttl");
  }
  Require(!status.Is("ReplicaFailure"), "ReplicaFailure after the end");
  const auto clean = spec.run_policy.clean_pod_policy;
  bool active = false;
  for (const auto& pod : snapshot.pods) {
    active = active || !Ended(*pod);
    if (pod->deletion) continue;
    Require(clean != core::CleanPodPolicy::kAll, "cleanPodPolicy All leaves " + pod->name);
    const bool must_go = clean == core::CleanPodPolicy::kRunning ||
                         (clean == core::CleanPodPolicy::kNotSet && status.Is("Failed"));
    Require(Ended(*pod) || !must_go, "cleanPodPolicy leaves a running pod " + pod->name);
  }
  Require(active || snapshot.services.empty(), "the Service outlives the last pod");
}

}  // namespace model
