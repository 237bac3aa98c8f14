#include <algorithm>
#include <charconv>

#include "core/encode.h"
#include "core/json.h"
#include "core/model.h"
#include "core/names.h"

namespace core {

int JobSpec::Replicas(ReplicaType type) const {
  auto it = replicas.find(type);
  return it == replicas.end() ? 0 : it->second.replicas;
}

int JobSpec::TotalReplicas() const {
  int total = 0;
  for (const auto& [type, replica] : replicas) total += replica.replicas;
  return total;
}

const Condition* JobStatus::Find(std::string_view type) const {
  for (const Condition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

bool JobStatus::Is(std::string_view type) const {
  const Condition* condition = Find(type);
  return condition != nullptr && condition->status;
}

bool JobStatus::Finished() const { return Is("Succeeded") || Is("Failed"); }

namespace {

constexpr int kMaxReplicas = 100000;

std::optional<seconds> GetSeconds(const Json& object, const char* key) {
  auto value = GetInt64(object, key);
  if (!value) return std::nullopt;
  // Far beyond any job's life, and small enough to add to a time.
  constexpr int64_t kCentury = int64_t{100} * 366 * 86400;
  return seconds{std::clamp<int64_t>(*value, 0, kCentury)};
}

RestartPolicy ParseRestartPolicy(const std::string& text) {
  if (text == "Always") return RestartPolicy::kAlways;
  if (text == "Never") return RestartPolicy::kNever;
  if (text == "ExitCode") return RestartPolicy::kExitCode;
  return RestartPolicy::kOnFailure;
}

CleanPodPolicy ParseCleanPodPolicy(const std::string& text) {
  if (text == "All") return CleanPodPolicy::kAll;
  if (text == "Running") return CleanPodPolicy::kRunning;
  if (text == "None") return CleanPodPolicy::kNone;
  return CleanPodPolicy::kNotSet;
}

ReplicaSpec DecodeReplica(const Json& json, bool with_template) {
  ReplicaSpec replica;
  replica.replicas = std::clamp(GetInt(json, "replicas").value_or(1), 0, kMaxReplicas);
  replica.restart_policy = ParseRestartPolicy(GetString(json, "restartPolicy"));
  if (with_template) replica.template_json = Dump(Get(json, "template"));
  return replica;
}

RunPolicy DecodeRunPolicy(const Json& json) {
  RunPolicy policy;
  policy.clean_pod_policy = ParseCleanPodPolicy(GetString(json, "cleanPodPolicy"));
  policy.ttl_after_finished = GetSeconds(json, "ttlSecondsAfterFinished");
  policy.active_deadline = GetSeconds(json, "activeDeadlineSeconds");
  policy.backoff_limit = GetInt(json, "backoffLimit");
  policy.suspend = GetBool(json, "suspend");
  if (Get(json, "managedBy").is_string()) policy.managed_by = GetString(json, "managedBy");
  if (GetString(json, "restartScope") == "Job") policy.restart_scope = RestartScope::kJob;
  if (const Json& s = Get(json, "schedulingPolicy"); s.is_object()) {
    SchedulingPolicy scheduling;
    scheduling.min_available = GetInt(s, "minAvailable");
    scheduling.queue = GetString(s, "queue");
    if (const Json& r = Get(s, "minResources"); r.is_object())
      scheduling.min_resources_json = Dump(r);
    scheduling.priority_class = GetString(s, "priorityClass");
    scheduling.schedule_timeout_seconds = GetInt(s, "scheduleTimeoutSeconds");
    policy.scheduling = scheduling;
  }
  return policy;
}

ElasticPolicy DecodeElastic(const Json& json, int workers) {
  ElasticPolicy elastic;
  elastic.min_replicas = GetInt(json, "minReplicas");
  elastic.max_replicas = GetInt(json, "maxReplicas");
  if (!elastic.min_replicas) elastic.min_replicas = workers;
  if (!elastic.max_replicas) elastic.max_replicas = workers;
  elastic.rdzv_backend = GetString(json, "rdzvBackend");
  elastic.rdzv_port = GetInt(json, "rdzvPort");
  elastic.rdzv_host = GetString(json, "rdzvHost");
  elastic.rdzv_id = GetString(json, "rdzvId");
  if (const Json& conf = Get(json, "rdzvConf"); conf.is_array()) {
    for (const Json& item : conf) {
      elastic.rdzv_conf.emplace_back(GetString(item, "key"), GetString(item, "value"));
    }
  }
  elastic.standalone = GetBool(json, "standalone");
  elastic.nproc_per_node = GetInt(json, "nProcPerNode");
  elastic.max_restarts = GetInt(json, "maxRestarts");
  if (const Json& metrics = Get(json, "metrics"); metrics.is_array() && !metrics.empty()) {
    elastic.metrics_json = Dump(metrics);
  }
  return elastic;
}

JobSpec DecodeSpec(const Json& json, bool with_template) {
  JobSpec spec;
  const Json& replicas = Get(json, "pytorchReplicaSpecs");
  for (ReplicaType type : {ReplicaType::kMaster, ReplicaType::kWorker}) {
    const Json& replica = Get(replicas, std::string(Name(type)).c_str());
    if (replica.is_object()) spec.replicas[type] = DecodeReplica(replica, with_template);
  }
  spec.run_policy = DecodeRunPolicy(Get(json, "runPolicy"));
  spec.nproc_per_node = GetString(json, "nprocPerNode");
  if (const Json& elastic = Get(json, "elasticPolicy"); elastic.is_object()) {
    spec.elastic = DecodeElastic(elastic, spec.Replicas(ReplicaType::kWorker));
  }
  if (spec.nproc_per_node.empty() && !(spec.elastic && spec.elastic->nproc_per_node)) {
    spec.nproc_per_node = "auto";
  }
  return spec;
}

ReplicaStatus DecodeReplicaStatus(const Json& json) {
  ReplicaStatus status;
  status.active = GetInt(json, "active").value_or(0);
  status.succeeded = GetInt(json, "succeeded").value_or(0);
  status.failed = GetInt(json, "failed").value_or(0);
  status.ready = GetInt(json, "ready").value_or(0);
  status.selector = GetString(json, "selector");
  status.completed = ParseIndexes(GetString(json, "completedIndexes"), kMaxReplicas);
  return status;
}

std::optional<LastFailure> DecodeLastFailure(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  LastFailure failure;
  failure.pod = GetString(json, "pod");
  failure.replica_type = GetString(json, "replicaType");
  failure.index = GetInt(json, "index").value_or(0);
  failure.exit_code = GetInt(json, "exitCode");
  failure.reason = GetString(json, "reason");
  failure.message = GetString(json, "message");
  failure.time = GetTime(json, "time").value_or(TimePoint{});
  return failure;
}

JobStatus DecodeStatus(const Json& json) {
  JobStatus status;
  if (const Json& conditions = Get(json, "conditions"); conditions.is_array()) {
    for (const Json& item : conditions) {
      Condition condition;
      condition.type = GetString(item, "type");
      condition.status = GetString(item, "status") == "True";
      condition.reason = GetString(item, "reason");
      condition.message = GetString(item, "message");
      condition.last_update = GetTime(item, "lastUpdateTime").value_or(TimePoint{});
      condition.last_transition = GetTime(item, "lastTransitionTime").value_or(TimePoint{});
      if (!condition.type.empty()) status.conditions.push_back(std::move(condition));
    }
  }
  const Json& replicas = Get(json, "replicaStatuses");
  for (ReplicaType type : {ReplicaType::kMaster, ReplicaType::kWorker}) {
    const Json& replica = Get(replicas, std::string(Name(type)).c_str());
    if (replica.is_object()) status.replicas[type] = DecodeReplicaStatus(replica);
  }
  status.start_time = GetTime(json, "startTime");
  status.completion_time = GetTime(json, "completionTime");
  status.observed_generation = GetInt64(json, "observedGeneration").value_or(0);
  status.summary = GetString(json, "summary");
  status.restart_count = GetInt(json, "restartCount").value_or(0);
  status.attempt = GetInt(json, "attempt").value_or(0);
  if (const Json& accounted = Get(json, "accountedPods"); accounted.is_array()) {
    for (const Json& item : accounted) {
      AccountedPod pod{GetString(item, "uid"), GetInt(item, "restarts").value_or(0),
                       GetBool(item, "failed")};
      if (!pod.uid.empty()) status.accounted.push_back(std::move(pod));
    }
  }
  if (const Json& waiting = Get(json, "waiting"); waiting.is_object()) {
    status.waiting = Waiting{GetString(waiting, "pod"), GetString(waiting, "reason"),
                             GetString(waiting, "message")};
  }
  status.last_failure = DecodeLastFailure(Get(json, "lastFailure"));
  return status;
}

}  // namespace

base::Result<Job> DecodeJob(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  const Json& metadata = Get(json, "metadata");
  Job job;
  job.key = {GetString(metadata, "namespace"), GetString(metadata, "name")};
  if (job.key.name.empty()) {
    return base::Error{base::ErrorCode::kInvalidArgument, "not a PyTorchJob: no metadata.name", {}};
  }
  job.uid = GetString(metadata, "uid");
  job.resource_version = GetString(metadata, "resourceVersion");
  job.generation = GetInt64(metadata, "generation").value_or(0);
  job.created = GetTime(metadata, "creationTimestamp").value_or(TimePoint{});
  job.deleting = Get(metadata, "deletionTimestamp").is_string();
  if (std::string value = GetString(Get(metadata, "annotations"), kInitContainerAnnotation);
      !value.empty()) {
    job.annotations[kInitContainerAnnotation] = value;
  }
  job.status = DecodeStatus(Get(json, "status"));
  const bool finished = job.status.Finished();
  job.spec = DecodeSpec(Get(json, "spec"), !finished);
  if (!finished) job.errors = Validate(json);
  return job;
}

}  // namespace core
