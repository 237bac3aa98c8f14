#include "property/cluster.h"

#include <array>

namespace model {
namespace {

using core::Json;
using core::Kind;

constexpr std::array<int, 3> kDeadlines = {0, 20, 700};
constexpr std::array<int, 3> kTtls = {0, 0, 30};
constexpr seconds kGrace{30};

base::Error Refuse(base::ErrorCode code, std::string message) {
  return {code, std::move(message), {}};
}

bool Ended(const core::Pod& pod) {
  return pod.phase == core::PodPhase::kSucceeded || pod.phase == core::PodPhase::kFailed;
}

// The value of `"restartPolicy":"…"` in the body of a pod.
std::string RestartPolicyOf(const std::string& body) {
  static constexpr std::string_view kKey = "\"restartPolicy\":\"";
  const size_t at = body.find(kKey);
  if (at == std::string::npos) return "Always";
  const size_t begin = at + kKey.size();
  return body.substr(begin, body.find('"', begin) - begin);
}

}  // namespace

Cluster::Cluster(const Setup& setup, const TimePoint* clock)
    : service_per_replica(setup.service_per_replica), setup_(setup), clock_(clock) {
  CreateJob();
}

Json Cluster::NewSpec() const {
  static constexpr const char* kPolicies[] = {"OnFailure", "Never", "ExitCode", "Always"};
  static constexpr const char* kClean[] = {"", "All", "Running", "None"};
  const Json replica = {
      {"restartPolicy", kPolicies[setup_.policy]},
      {"template",
       {{"spec", {{"containers", Json::array({{{"name", "pytorch"}, {"image", "train"}}})}}}}}};
  Json spec = {{"runPolicy", Json::object()}, {"pytorchReplicaSpecs", Json::object()}};
  if (setup_.master) spec["pytorchReplicaSpecs"]["Master"] = replica;
  if (setup_.workers > 0) {
    spec["pytorchReplicaSpecs"]["Worker"] = replica;
    spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = setup_.workers;
  }
  Json& policy = spec["runPolicy"];
  if (setup_.backoff > 0) policy["backoffLimit"] = setup_.backoff - 1;
  if (setup_.deadline > 0) policy["activeDeadlineSeconds"] = kDeadlines[setup_.deadline];
  if (setup_.ttl > 0) policy["ttlSecondsAfterFinished"] = kTtls[setup_.ttl];
  if (setup_.clean > 0) policy["cleanPodPolicy"] = kClean[setup_.clean];
  if (setup_.job_scope) policy["restartScope"] = "Job";
  if (setup_.elastic) spec["elasticPolicy"] = {{"minReplicas", 1}, {"maxReplicas", 4}};
  return spec;
}

void Cluster::CreateJob() {
  if (job != nullptr) return;
  document_ = {{"apiVersion", "kubeflow.org/v1"},
               {"kind", "PyTorchJob"},
               {"metadata",
                {{"name", kJobName},
                 {"namespace", kNamespace},
                 {"uid", "job-" + std::to_string(next_uid_++)},
                 {"generation", 1},
                 {"creationTimestamp", core::FormatTime(*clock_)}}},
               {"spec", NewSpec()}};
  StoreJob();
}

void Cluster::StoreJob() {
  document_["metadata"]["resourceVersion"] = std::to_string(++revision_);
  auto decoded = core::DecodeJob(document_.dump());
  job = std::make_shared<const core::Job>(std::move(decoded).value());
  job_log.push_back({revision_, job, false});
}

void Cluster::DeleteJob() {
  if (job == nullptr) return;
  job_log.push_back({++revision_, job, true});
  job = nullptr;
}

void Cluster::TouchJob() {
  if (job != nullptr) StoreJob();
}

base::Result<uint64_t> Cluster::PatchStatus(const std::string& text) {
  const Json patch = Json::parse(text);
  if (job == nullptr) return Refuse(base::ErrorCode::kNotFound, "not found");
  if (core::GetString(patch.at("metadata"), "resourceVersion") != job->resource_version) {
    return Refuse(base::ErrorCode::kConflict, "the object has been modified");
  }
  Json after = document_.contains("status") ? document_["status"] : Json::object();
  after.merge_patch(patch.at("status"));
  if (!document_.contains("status") || after != document_["status"]) {
    document_["status"] = std::move(after);
    StoreJob();
  }
  return revision_;
}

void Cluster::StorePod(core::Pod pod) {
  pod.resource_version = std::to_string(++revision_);
  auto stored = std::make_shared<const core::Pod>(std::move(pod));
  pods[stored->name] = stored;
  pod_log.push_back({revision_, std::move(stored), false});
}

base::Result<uint64_t> Cluster::Create(Kind kind, const std::string& body) {
  if (kind == Kind::kService) {
    core::Service service = core::DecodeService(body).value();
    if (services.contains(service.name)) {
      return Refuse(base::ErrorCode::kAlreadyExists,
                    "services \"" + service.name + "\" already exists");
    }
    service.uid = "service-" + std::to_string(next_uid_++);
    service.resource_version = std::to_string(++revision_);
    auto stored = std::make_shared<const core::Service>(std::move(service));
    services[stored->name] = stored;
    service_log.push_back({revision_, std::move(stored), false});
    return revision_;
  }
  core::Pod pod = core::DecodePod(body).value();
  if (pods.contains(pod.name)) {
    return Refuse(base::ErrorCode::kAlreadyExists, "pods \"" + pod.name + "\" already exists");
  }
  if (quota) return Refuse(base::ErrorCode::kForbidden, "pods is forbidden: exceeded quota");
  pod.uid = "pod-" + std::to_string(next_uid_++);
  pod.created = Second();
  facts[pod.uid].restart_policy = RestartPolicyOf(body);
  StorePod(std::move(pod));
  return revision_;
}

void Cluster::Remove(Kind kind, const std::string& name) {
  if (kind == Kind::kService) {
    service_log.push_back({++revision_, services.at(name), true});
    services.erase(name);
  } else {
    pod_log.push_back({++revision_, pods.at(name), true});
    pods.erase(name);
  }
}

base::Result<uint64_t> Cluster::Delete(Kind kind, const std::string& name, const std::string& uid,
                                       std::optional<int> grace_seconds) {
  std::string found;
  if (kind == Kind::kJob && job != nullptr) found = job->uid;
  if (kind == Kind::kPod && pods.contains(name)) found = pods.at(name)->uid;
  if (kind == Kind::kService && services.contains(name)) found = services.at(name)->uid;
  if (found.empty()) return Refuse(base::ErrorCode::kNotFound, "not found");
  if (found != uid)
    return Refuse(base::ErrorCode::kConflict, "the UID in the precondition differs");
  if (kind == Kind::kJob) {
    DeleteJob();
  } else if (kind == Kind::kService) {
    Remove(kind, name);
  } else {
    // The grace period of a pod that has no node or has ended is 0
    // (pkg/registry/core/pod/strategy.go, CheckGracefulDelete).
    const core::Pod& pod = *pods.at(name);
    if (grace_seconds == 0 || pod.node.empty() || Ended(pod)) {
      Remove(kind, name);
    } else if (!pod.deletion) {
      EditPod(name, [&](core::Pod& p) { p.deletion = Second() + kGrace; });
    }
  }
  return revision_;
}

base::Result<uint64_t> Cluster::RestoreLabels(const std::string& name) {
  if (!pods.contains(name)) return Refuse(base::ErrorCode::kNotFound, "not found");
  EditPod(name, [](core::Pod& pod) { pod.labels_intact = true; });
  return revision_;
}

bool Cluster::CollectGarbage() {
  auto orphaned = [&](const auto& object) {
    return object.owner_kind == "PyTorchJob" && (job == nullptr || object.owner_uid != job->uid);
  };
  for (const auto& [name, service] : services) {
    if (!orphaned(*service)) continue;
    Remove(Kind::kService, name);
    return true;
  }
  for (const auto& [name, pod] : pods) {
    if (!orphaned(*pod) || pod->deletion) continue;
    (void)Delete(Kind::kPod, name, pod->uid, std::nullopt);
    return true;
  }
  return false;
}

void Cluster::CreateForeign(Kind kind, const std::string& name, bool labelled) {
  if (kind == Kind::kService ? services.contains(name) : pods.contains(name)) return;
  const std::string uid = "foreign-" + std::to_string(next_uid_++);
  const std::string owner = labelled ? "ReplicaSet" : "Hidden";
  if (kind == Kind::kService) {
    core::Service service;
    service.ns = kNamespace;
    service.name = name;
    service.uid = uid;
    service.owner_uid = "other";
    service.owner_kind = owner;
    service.resource_version = std::to_string(++revision_);
    auto stored = std::make_shared<const core::Service>(std::move(service));
    services[name] = stored;
    service_log.push_back({revision_, std::move(stored), false});
    return;
  }
  core::Pod pod;
  pod.ns = kNamespace;
  pod.name = name;
  pod.uid = uid;
  pod.owner_uid = "other";
  pod.owner_kind = owner;
  pod.phase = core::PodPhase::kRunning;
  pod.created = Second();
  StorePod(std::move(pod));
}

bool Cluster::RemoveForeign() {
  for (const auto& [name, pod] : pods) {
    if (pod->owner_uid != "other") continue;
    Remove(Kind::kPod, name);
    return true;
  }
  for (const auto& [name, service] : services) {
    if (service->owner_uid != "other") continue;
    Remove(Kind::kService, name);
    return true;
  }
  return false;
}

}  // namespace model
