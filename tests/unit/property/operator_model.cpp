#include "property/operator_model.h"

#include <algorithm>

#include "core/names.h"

namespace model {
namespace {

using core::Kind;

constexpr int kMaxRounds = 8;

std::string Show(const core::Action& action) {
  if (const auto* write = std::get_if<core::WriteStatus>(&action)) return "status " + write->patch;
  if (const auto* create = std::get_if<core::Create>(&action)) {
    return "create " + std::string(core::Name(create->kind)) + " " + create->name;
  }
  if (const auto* gone = std::get_if<core::Delete>(&action)) {
    return "delete " + std::string(core::Name(gone->kind)) + " " + gone->name +
           (gone->grace_seconds ? " by force" : "");
  }
  return "patch " + std::get<core::Patch>(action).name;
}

bool Same(const core::Plan& a, const core::Plan& b) {
  if (a.actions.size() != b.actions.size() || a.look_again_at != b.look_again_at ||
      a.ask_nodes != b.ask_nodes || a.why != b.why) {
    return false;
  }
  for (size_t i = 0; i < a.actions.size(); ++i) {
    if (Show(a.actions[i]) != Show(b.actions[i])) return false;
    const auto* create = std::get_if<core::Create>(&a.actions[i]);
    if (create && create->body != std::get<core::Create>(b.actions[i]).body) return false;
  }
  return true;
}

}  // namespace

OperatorModel::OperatorModel(Cluster* cluster, Oracle* oracle, const TimePoint* clock, Log log)
    : cluster_(*cluster), oracle_(*oracle), clock_(*clock), log_(std::move(log)) {
  options_.service_per_replica = cluster->service_per_replica;
  Crash();
}

void OperatorModel::Crash() {
  departed_.clear();
  errors_.clear();
  nodes_.clear();
  status_written_.reset();
  timer_.reset();
  woken_ = true;
  // A new process lists everything.
  job_ = cluster_.job;
  pods_.clear();
  services_.clear();
  for (const auto& [name, pod] : cluster_.pods) {
    if (!Cluster::Hidden(pod->owner_kind)) pods_[name] = pod;
  }
  for (const auto& [name, service] : cluster_.services) {
    if (!Cluster::Hidden(service->owner_kind)) services_[name] = service;
  }
  jobs_seen_ = cluster_.job_log.size();
  pods_seen_ = cluster_.pod_log.size();
  services_seen_ = cluster_.service_log.size();
}

void OperatorModel::Apply(const Change<core::Job>& change) {
  woken_ = true;
  if (change.gone || job_ == nullptr || job_->uid != change.object->uid) {
    departed_.clear();
    errors_.clear();
    status_written_.reset();
  }
  job_ = change.gone ? nullptr : change.object;
  if (job_ != nullptr && job_->status.Finished()) departed_.clear();
}

void OperatorModel::Apply(const Change<core::Pod>& change) {
  if (Cluster::Hidden(change.object->owner_kind)) return;
  woken_ = true;
  const std::string& name = change.object->name;
  auto held = pods_.find(name);
  if (change.gone) {
    if (held == pods_.end() || held->second->uid != change.object->uid) return;
    const bool ours = job_ != nullptr && change.object->owner_uid == job_->uid;
    if (ours && !job_->status.Finished()) departed_[name] = {change.object, clock_};
    pods_.erase(held);
    return;
  }
  if (job_ != nullptr && change.object->owner_uid == job_->uid) departed_.erase(name);
  pods_[name] = change.object;
}

void OperatorModel::Apply(const Change<core::Service>& change) {
  if (Cluster::Hidden(change.object->owner_kind)) return;
  woken_ = true;
  if (change.gone) {
    services_.erase(change.object->name);
  } else {
    services_[change.object->name] = change.object;
  }
}

void OperatorModel::Deliver(size_t jobs, size_t pods, size_t services) {
  for (; jobs > 0 && jobs_seen_ < cluster_.job_log.size(); --jobs) {
    Apply(cluster_.job_log[jobs_seen_++]);
  }
  for (; pods > 0 && pods_seen_ < cluster_.pod_log.size(); --pods) {
    Apply(cluster_.pod_log[pods_seen_++]);
  }
  for (; services > 0 && services_seen_ < cluster_.service_log.size(); --services) {
    Apply(cluster_.service_log[services_seen_++]);
  }
}

void OperatorModel::DeliverAll() { Deliver(SIZE_MAX, SIZE_MAX, SIZE_MAX); }

void OperatorModel::CatchUpWithOwnWrites() {
  while (jobs_seen_ < cluster_.job_log.size() &&
         cluster_.job_log[jobs_seen_].revision <= own_job_) {
    Deliver(1, 0, 0);
  }
  while (pods_seen_ < cluster_.pod_log.size() &&
         cluster_.pod_log[pods_seen_].revision <= own_pod_) {
    Deliver(0, 1, 0);
  }
  while (services_seen_ < cluster_.service_log.size() &&
         cluster_.service_log[services_seen_].revision <= own_service_) {
    Deliver(0, 0, 1);
  }
}

core::Snapshot OperatorModel::Look() const {
  core::Snapshot snapshot;
  snapshot.job = job_;
  const core::JobSpec& spec = job_->spec;
  auto wanted = [&](const std::string& name) {
    auto replica = core::ParsePodName(kJobName, name);
    return replica && replica->index < spec.Replicas(replica->type);
  };
  auto sort = [&](Kind kind, const auto& held, auto* own) {
    for (const auto& [name, object] : held) {
      if (object->owner_uid == job_->uid) {
        own->push_back(object);
      } else if (wanted(name)) {
        snapshot.holders.push_back({kind, name, "another owner", false});
      }
    }
  };
  sort(Kind::kPod, pods_, &snapshot.pods);
  sort(Kind::kService, services_, &snapshot.services);
  for (const auto& [name, gone] : departed_) snapshot.departed.push_back(gone);
  for (const auto& [key, error] : errors_) snapshot.create_errors.push_back(error);
  snapshot.nodes = nodes_;
  snapshot.status_written = status_written_;
  return snapshot;
}

core::Plan OperatorModel::Decide(const core::Snapshot& snapshot) const {
  try {
    core::Plan plan = core::Decide(snapshot, clock_, options_);
    if (decisions_ % 8 == 0) {
      Require(Same(plan, core::Decide(snapshot, clock_, options_)), "Decide is not deterministic");
    }
    return plan;
  } catch (const std::exception& error) {
    throw Violation{std::string("Decide throws: ") + error.what()};
  }
}

bool OperatorModel::Owned(Kind kind, const std::string& name) const {
  if (kind == Kind::kPod) {
    auto it = cluster_.pods.find(name);
    return it != cluster_.pods.end() && it->second->owner_uid == job_->uid;
  }
  auto it = cluster_.services.find(name);
  return it != cluster_.services.end() && it->second->owner_uid == job_->uid;
}

void OperatorModel::Pass(int crash_after, Fault fault, int fault_at) {
  crash_after_ = crash_after;
  fault_ = fault;
  fault_at_ = fault_at;
  woken_ = false;
  timer_.reset();
  nodes_.clear();
  for (int round = 0; round < kMaxRounds; ++round) {
    CatchUpWithOwnWrites();
    if (job_ == nullptr) return;
    // What the runtime forgets: pods whose index is not wanted now, errors that are over.
    std::erase_if(departed_, [&](const auto& entry) {
      const core::Pod& pod = *entry.second.pod;
      return pod.index < 0 || pod.index >= job_->spec.Replicas(pod.type);
    });
    std::erase_if(errors_, [&](const auto& entry) {
      const auto& [kind, name] = entry.first;
      if (kind == Kind::kService) return services_.contains(name);
      auto pod = pods_.find(name);
      return pod != pods_.end() && pod->second->owner_uid == job_->uid;
    });
    const core::Snapshot snapshot = Look();
    ++decisions_;
    const core::Plan plan = Decide(snapshot);
    timer_ = plan.look_again_at;
    Outcome outcome = Carry(snapshot, plan);
    if (outcome.died) return Crash();
    if (outcome.stop) {
      woken_ = true;
      return;
    }
    for (const std::string& node : plan.ask_nodes) {
      auto state = cluster_.nodes.find(node);
      nodes_[node] = state == cluster_.nodes.end() ? core::NodeState::kHealthy : state->second;
      outcome.again = true;
    }
    if (!outcome.again) return;
  }
  throw Violation{"one pass decides without end"};
}

base::Result<uint64_t> OperatorModel::Write(const core::Action& action) {
  if (const auto* create = std::get_if<core::Create>(&action)) {
    return cluster_.Create(create->kind, create->body);
  }
  if (const auto* gone = std::get_if<core::Delete>(&action)) {
    return cluster_.Delete(gone->kind, gone->name, gone->uid, gone->grace_seconds);
  }
  return cluster_.RestoreLabels(std::get<core::Patch>(action).name);
}

base::Result<uint64_t> OperatorModel::WriteStatus(const core::Snapshot& snapshot,
                                                  const core::WriteStatus& action) {
  auto result = cluster_.PatchStatus(action.patch);
  if (!result.ok()) return result;
  ++status_writes_;
  oracle_.OnStatus(snapshot, *cluster_.job, action, clock_);
  return result;
}

OperatorModel::Outcome OperatorModel::Carry(const core::Snapshot& snapshot,
                                            const core::Plan& plan) {
  Outcome outcome;
  core::JobStatus status = snapshot.job->status;
  bool pods_stopped = false, services_stopped = false;
  for (const core::Action& action : plan.actions) {
    if (crash_after_ == 0) {
      if (log_) log_("    dies");
      outcome.died = true;
      return outcome;
    }
    if (crash_after_ > 0) --crash_after_;
    const auto* create = std::get_if<core::Create>(&action);
    if (create && (create->kind == Kind::kPod ? pods_stopped : services_stopped)) continue;
    const auto* write = std::get_if<core::WriteStatus>(&action);
    const Fault fault = fault_at_-- == 0 ? fault_ : Fault::kNone;
    if (fault == Fault::kConflict) cluster_.TouchJob();
    if (log_) log_("    " + Show(action));
    if (!write) oracle_.OnAction(snapshot, status, action, clock_);
    base::Result<uint64_t> result = base::Error{base::ErrorCode::kUnavailable, "500", {}};
    if (fault != Fault::kRefused) result = write ? WriteStatus(snapshot, *write) : Write(action);
    if (result.ok() && write) status = cluster_.job->status;
    if (fault == Fault::kLostReply) result = base::Error{base::ErrorCode::kTimeout, "timeout", {}};
    if (log_ && !result.ok()) log_("      " + result.error().message);
    if (write) {
      if (!result.ok()) {
        outcome.stop = true;
        return outcome;
      }
      own_job_ = *result;
      status_written_ = clock_;
    } else if (create) {
      Created(*create, result, &outcome);
      if (outcome.again) {
        pods_stopped = true;
        services_stopped = services_stopped || create->kind == Kind::kService;
      }
    } else if (result.ok()) {
      const auto* gone = std::get_if<core::Delete>(&action);
      (gone && gone->kind == Kind::kService ? own_service_
       : gone && gone->kind == Kind::kJob   ? own_job_
                                            : own_pod_) = *result;
    } else if (result.error().code != base::ErrorCode::kNotFound &&
               result.error().code != base::ErrorCode::kConflict) {
      woken_ = true;  // tried again after a backoff
    }
  }
  return outcome;
}

void OperatorModel::Created(const core::Create& create, const base::Result<uint64_t>& result,
                            Outcome* outcome) {
  const auto key = std::pair(create.kind, create.name);
  if (result.ok()) {
    (create.kind == Kind::kService ? own_service_ : own_pod_) = *result;
    errors_.erase(key);
    return;
  }
  if (result.error().code == base::ErrorCode::kAlreadyExists && Owned(create.kind, create.name)) {
    DeliverAll();  // it is looked up by a GET
    errors_.erase(key);
    return;
  }
  auto [it, fresh] = errors_.try_emplace(key);
  const int tries = fresh ? 1 : it->second.tries + 1;
  it->second = {create.kind, create.name, result.error().code, result.error().message,
                clock_,      tries};
  outcome->again = true;
}

void OperatorModel::RequireIdle() {
  if (job_ == nullptr) return;
  const core::Plan plan = Decide(Look());
  if (plan.Empty()) return;
  std::string text = "a decision right after a pass is not empty:";
  for (const core::Action& action : plan.actions) text += "\n      " + Show(action);
  throw Violation{text};
}

void OperatorModel::Settled() const {
  if (job_ != nullptr) oracle_.OnSettled(Look(), timer_, clock_);
}

}  // namespace model
