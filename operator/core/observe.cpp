#include "core/observe.h"

#include <algorithm>
#include <unordered_map>

#include "core/environment.h"
#include "core/names.h"

namespace core {
namespace {

bool OfEarlierIncarnation(const Pod& pod, const JobStatus& status) {
  return !pod.incarnation.empty() && status.start_time &&
         pod.incarnation != FormatTime(*status.start_time);
}

bool OfEarlierAttempt(const Pod& pod, const Job& job, const JobStatus& status) {
  return job.spec.run_policy.restart_scope == RestartScope::kJob && pod.attempt < status.attempt;
}

bool Active(const Pod& pod) {
  return pod.phase != PodPhase::kSucceeded && pod.phase != PodPhase::kFailed;
}

}  // namespace

bool Observation::AnyActive() const {
  auto active = [](const Pod* pod) { return pod != nullptr && Active(*pod); };
  return std::any_of(surplus.begin(), surplus.end(), active) ||
         std::any_of(stale.begin(), stale.end(), active) ||
         std::any_of(replicas.begin(), replicas.end(),
                     [&](const Replica& replica) { return active(replica.pod); });
}

Observation Observe(const Snapshot& snapshot, const JobStatus& status) {
  const Job& job = *snapshot.job;
  Observation seen;
  std::unordered_map<std::string, const Pod*> current, stale;
  for (const auto& pod : snapshot.pods) {
    if (pod->index < 0) continue;
    if (pod->index >= job.spec.Replicas(pod->type)) {
      seen.surplus.push_back(pod.get());
    } else if (OfEarlierIncarnation(*pod, status) || OfEarlierAttempt(*pod, job, status)) {
      seen.stale.push_back(pod.get());
      stale[pod->name] = pod.get();
    } else {
      current[pod->name] = pod.get();
    }
  }
  std::unordered_map<std::string, const DepartedPod*> departed;
  for (const DepartedPod& gone : snapshot.departed) {
    if (OfEarlierIncarnation(*gone.pod, status)) continue;
    if (OfEarlierAttempt(*gone.pod, job, status)) {
      seen.stale_departed.push_back(&gone);
    } else {
      departed[gone.pod->name] = &gone;
    }
  }
  std::unordered_map<std::string, const Holder*> holders;
  for (const Holder& holder : snapshot.holders) {
    if (holder.kind == Kind::kPod) holders[holder.name] = &holder;
  }
  auto find = [](const auto& map, const std::string& name) {
    auto it = map.find(name);
    return it == map.end() ? nullptr : it->second;
  };
  for (const auto& [type, spec] : job.spec.replicas) {
    seen.training_container[type] =
        TrainingContainer(Json::parse(spec.template_json, nullptr, false));
    auto old = status.replicas.find(type);
    for (int index = 0; index < spec.replicas; ++index) {
      Replica replica;
      replica.type = type;
      replica.index = index;
      replica.name = PodName(job.key.name, type, index);
      replica.pod = find(current, replica.name);
      replica.stale = find(stale, replica.name);
      replica.departed = find(departed, replica.name);
      replica.holder = find(holders, replica.name);
      replica.completed = old != status.replicas.end() && old->second.completed.contains(index);
      if (replica.pod != nullptr && replica.pod->phase == PodPhase::kFailed &&
          !replica.pod->deletion) {
        RestartPolicy policy = spec.restart_policy;
        replica.verdict = Judge(*replica.pod, policy, seen.training_container[type]);
      }
      seen.replicas.push_back(std::move(replica));
    }
  }
  return seen;
}

void RecordCompleted(const JobSpec& spec, Observation* observation, JobStatus* status) {
  for (auto& [type, replica] : status->replicas) {
    std::erase_if(replica.completed, [&](int index) { return index >= spec.Replicas(type); });
  }
  for (Replica& replica : observation->replicas) {
    const Pod* pod = replica.pod;
    if (pod == nullptr && replica.departed != nullptr) pod = replica.departed->pod.get();
    if (pod != nullptr && pod->phase == PodPhase::kSucceeded) replica.completed = true;
    if (replica.completed) status->replicas[replica.type].completed.insert(replica.index);
  }
}

}  // namespace core
