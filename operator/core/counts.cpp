#include "core/counts.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "core/conditions.h"
#include "core/names.h"

namespace core {
namespace {

constexpr size_t kMaxMessage = 1024;

// What a replica waits for, in the scheduler's or the kubelet's words.
std::optional<Waiting> WaitsFor(const Pod& pod) {
  const bool ended = pod.phase == PodPhase::kSucceeded || pod.phase == PodPhase::kFailed;
  if (pod.deletion || ended) return std::nullopt;
  if (pod.phase == PodPhase::kPending && !pod.unschedulable.empty()) {
    return Waiting{pod.name, "Unschedulable", Truncated(pod.unschedulable, kMaxMessage)};
  }
  for (const Container& container : pod.containers) {
    const std::string& reason = container.waiting_reason;
    if (reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing") continue;
    return Waiting{pod.name, reason, Truncated(container.waiting_message, kMaxMessage)};
  }
  return std::nullopt;
}

// The kubelet alternates between the two while it retries; which of them it is says nothing new.
bool IsImagePull(const std::string& reason) {
  return reason == "ErrImagePull" || reason == "ImagePullBackOff";
}

std::optional<Waiting> LowestWaiting(const Observation& seen, const std::optional<Waiting>& old) {
  for (const Replica& replica : seen.replicas) {
    if (replica.pod == nullptr) continue;
    auto waiting = WaitsFor(*replica.pod);
    if (!waiting) continue;
    if (old && old->pod == waiting->pod && old->reason == "ImagePullBackOff" &&
        IsImagePull(waiting->reason)) {
      return old;
    }
    return waiting;
  }
  return std::nullopt;
}

}  // namespace

void CountPods(const Snapshot& snapshot, const Observation& seen, JobStatus* status) {
  const Job& job = *snapshot.job;
  const bool finished = status->Finished();
  const bool suspended = status->Is(kSuspended);
  std::map<ReplicaType, ReplicaStatus> counts;
  for (const auto& [type, spec] : job.spec.replicas) {
    ReplicaStatus& count = counts[type];
    count.selector = SelectorText(job.key.name, type);
    auto old = status->replicas.find(type);
    if (old != status->replicas.end()) count.completed = old->second.completed;
  }
  for (const auto& pod : snapshot.pods) {
    auto count = counts.find(pod->type);
    if (pod->index < 0 || count == counts.end()) continue;
    const bool ended = pod->phase == PodPhase::kSucceeded || pod->phase == PodPhase::kFailed;
    // While suspended every pod is on its way out, and counts until it is gone.
    if (pod->phase == PodPhase::kRunning || (suspended && !ended)) ++count->second.active;
    const bool surplus = pod->index >= job.spec.Replicas(pod->type);
    if (pod->phase == PodPhase::kFailed && !surplus) ++count->second.failed;
    if (pod->ready && !ended) ++count->second.ready;
  }
  int running = 0, wanted = 0, succeeded = 0;
  for (const Replica& replica : seen.replicas) {
    ReplicaStatus& count = counts[replica.type];
    ++wanted;
    if (!suspended && replica.Runs() && !replica.Terminating()) ++running;
    if (replica.completed) {
      ++count.succeeded;
      ++succeeded;
    }
  }
  for (auto& [type, count] : counts) {
    auto old = status->replicas.find(type);
    // A failure that decided a job does not vanish with its pod.
    if (finished && old != status->replicas.end()) {
      count.failed = std::max(count.failed, old->second.failed);
    }
  }
  status->replicas = std::move(counts);
  status->summary = std::to_string(finished ? succeeded : running) + "/" + std::to_string(wanted);
  status->waiting = finished || suspended ? std::nullopt : LowestWaiting(seen, status->waiting);
  status->observed_generation = job.generation;
}

AccountedPod* Account(JobStatus* status, const std::string& uid) {
  auto it = std::find_if(status->accounted.begin(), status->accounted.end(),
                         [&](const AccountedPod& pod) { return pod.uid == uid; });
  if (it != status->accounted.end()) return &*it;
  if (status->accounted.size() >= kMaxAccounted) return nullptr;
  status->accounted.push_back({uid, 0, false});
  return &status->accounted.back();
}

void AccountRestarts(const Observation& seen, JobStatus* status) {
  // Also pods that are not wanted now: scaled up again before they are gone, they are.
  std::unordered_set<std::string> present;
  for (const Replica& replica : seen.replicas) {
    if (replica.pod != nullptr) present.insert(replica.pod->uid);
  }
  for (const auto* others : {&seen.surplus, &seen.stale}) {
    for (const Pod* pod : *others) present.insert(pod->uid);
  }
  std::erase_if(status->accounted,
                [&](const AccountedPod& pod) { return !present.contains(pod.uid); });
  for (const Replica& replica : seen.replicas) {
    if (replica.pod == nullptr || replica.Terminating()) continue;
    const int restarts = Restarts(*replica.pod);
    if (restarts == 0) continue;
    AccountedPod* accounted = Account(status, replica.pod->uid);
    if (accounted == nullptr || restarts <= accounted->restarts) continue;
    status->restart_count += restarts - accounted->restarts;
    accounted->restarts = restarts;
  }
}

}  // namespace core
