#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/validation.h"

namespace core {

using TimePoint = std::chrono::sys_time<std::chrono::milliseconds>;
using std::chrono::seconds;

struct JobKey {
  std::string ns;
  std::string name;
  auto operator<=>(const JobKey&) const = default;
};

enum class ReplicaType { kMaster, kWorker };
enum class RestartPolicy { kAlways, kOnFailure, kNever, kExitCode };
enum class CleanPodPolicy { kNotSet, kAll, kRunning, kNone };
enum class RestartScope { kReplica, kJob };

// "Master" / "Worker" and the lower-case form that names and labels use.
std::string_view Name(ReplicaType type);
std::string_view LowerName(ReplicaType type);
// `<job>-master-0`, `<job>-worker-<i>`.
std::string PodName(const std::string& job, ReplicaType type, int index);

struct ReplicaSpec {
  int replicas = 1;
  RestartPolicy restart_policy = RestartPolicy::kOnFailure;
  std::string template_json;  // compact PodTemplateSpec; empty when the job is finished
};

struct SchedulingPolicy {
  std::optional<int> min_available;
  std::string queue;
  std::string min_resources_json;  // "" = not set
  std::string priority_class;
  std::optional<int> schedule_timeout_seconds;
};

struct RunPolicy {
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kNotSet;
  std::optional<seconds> ttl_after_finished;
  std::optional<seconds> active_deadline;
  std::optional<int> backoff_limit;
  bool suspend = false;
  std::optional<std::string> managed_by;
  RestartScope restart_scope = RestartScope::kReplica;
  std::optional<SchedulingPolicy> scheduling;
};

struct ElasticPolicy {
  std::optional<int> min_replicas;
  std::optional<int> max_replicas;
  std::string rdzv_backend;
  std::optional<int> rdzv_port;
  std::string rdzv_host;
  std::string rdzv_id;
  std::vector<std::pair<std::string, std::string>> rdzv_conf;
  bool standalone = false;
  std::optional<int> nproc_per_node;
  std::optional<int> max_restarts;
  std::string metrics_json;  // array of autoscaling/v2 MetricSpec; "" = no autoscaler
};

// The spec with the defaults of behaviour.md section 2 filled in.
struct JobSpec {
  std::map<ReplicaType, ReplicaSpec> replicas;
  RunPolicy run_policy;
  std::string nproc_per_node;  // auto, cpu, gpu or a number; "" = elastic.nproc_per_node rules
  std::optional<ElasticPolicy> elastic;

  bool HasMaster() const { return replicas.contains(ReplicaType::kMaster); }
  int Replicas(ReplicaType type) const;
  int TotalReplicas() const;
};

struct Condition {
  std::string type;
  bool status = true;
  std::string reason;
  std::string message;
  TimePoint last_update{};
  TimePoint last_transition{};
  bool operator==(const Condition&) const = default;
};

struct ReplicaStatus {
  int active = 0;
  int succeeded = 0;
  int failed = 0;
  int ready = 0;
  std::string selector;
  std::set<int> completed;  // indexes whose success was seen
  bool operator==(const ReplicaStatus&) const = default;
};

// What of an existing pod is already in JobStatus::restart_count.
struct AccountedPod {
  std::string uid;
  int restarts = 0;
  bool failed = false;
  bool operator==(const AccountedPod&) const = default;
};

struct Waiting {
  std::string pod;
  std::string reason;
  std::string message;
  bool operator==(const Waiting&) const = default;
};

struct LastFailure {
  std::string pod;
  std::string replica_type;
  int index = 0;
  std::optional<int> exit_code;
  std::string reason;
  std::string message;
  TimePoint time{};
  bool operator==(const LastFailure&) const = default;
};

struct JobStatus {
  std::vector<Condition> conditions;
  std::map<ReplicaType, ReplicaStatus> replicas;
  std::optional<TimePoint> start_time;
  std::optional<TimePoint> completion_time;
  int64_t observed_generation = 0;
  std::string summary;
  int restart_count = 0;
  int attempt = 0;
  std::vector<AccountedPod> accounted;
  std::optional<Waiting> waiting;
  std::optional<LastFailure> last_failure;
  bool operator==(const JobStatus&) const = default;

  const Condition* Find(std::string_view type) const;
  bool Is(std::string_view type) const;  // present and True
  bool Finished() const;                 // Succeeded or Failed
};

struct Job {
  JobKey key;
  std::string uid;
  std::string resource_version;
  int64_t generation = 0;
  TimePoint created{};
  bool deleting = false;
  std::map<std::string, std::string> annotations;  // those of the operator only
  JobSpec spec;
  JobStatus status;
  std::vector<FieldError> errors;  // what is invalid in the spec; empty for a finished job
};

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };

struct Termination {
  int exit_code = 0;
  std::string reason;
  std::string message;
  std::optional<TimePoint> finished;
};

struct Container {
  std::string name;
  bool init = false;
  int restarts = 0;
  std::string waiting_reason;  // "" = not waiting
  std::string waiting_message;
  std::optional<Termination> terminated;
  std::optional<Termination> last_terminated;
};

// A pod with the labels of the operator, reduced to what decisions need.
struct Pod {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string owner_uid;   // of the controlling owner reference, "" = none
  std::string owner_kind;  // likewise, for messages
  std::string owner_name;
  std::string job_label;  // the job's name by label, for waking a job whose name is held
  ReplicaType type = ReplicaType::kWorker;  // from the pod's name, with `index`
  int index = -1;                           // -1: the name is not <owner>-<type>-<index>
  bool labels_intact = true;                // every label of the operator as it was made
  PodPhase phase = PodPhase::kPending;
  TimePoint created{};
  std::optional<TimePoint> started;   // status.startTime
  std::optional<TimePoint> deletion;  // metadata.deletionTimestamp: when the grace period ends
  bool forced = false;                // deleted with grace 0: only finalizers keep it
  std::optional<TimePoint> changed;   // latest transition of any condition
  bool ready = false;
  std::string reason;         // status.reason: Evicted, NodeLost, …
  std::string message;        // status.message
  std::string disruption;     // reason of the condition DisruptionTarget=True, else ""
  std::string unschedulable;  // message of PodScheduled=False, reason Unschedulable
  std::string node;
  std::vector<Container> containers;
  int attempt = 0;          // label training.kubeflow.org/attempt
  int replacement = 0;      // annotation: how many predecessors in a row it replaces
  std::string incarnation;  // annotation: status.startTime of the job when it was made; "" = none
};

struct Service {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string owner_uid;
  std::string owner_kind;
  std::string owner_name;
  std::string job_label;
  bool deleting = false;
};

// The group of a gang-scheduled job, of volcano or scheduler-plugins.
struct PodGroup {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string owner_uid;
  std::string owner_kind;
  std::string owner_name;
  std::string job_label;
  std::string phase;
  std::string spec_json;
  bool deleting = false;
};

// A HorizontalPodAutoscaler.
struct Autoscaler {
  std::string ns;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::string owner_uid;
  std::string owner_kind;
  std::string owner_name;
  std::string job_label;
  std::string spec_json;
  bool deleting = false;
};

// JSON text of one object as the API server sends it -> view. Any shape of input: a field of a
// wrong type counts as not set. Error (kInvalidArgument) only when it is no JSON object with a
// name.
base::Result<Job> DecodeJob(std::string_view json);
base::Result<Pod> DecodePod(std::string_view json);
base::Result<Service> DecodeService(std::string_view json);
base::Result<PodGroup> DecodePodGroup(std::string_view json);
base::Result<Autoscaler> DecodeAutoscaler(std::string_view json);

// RFC 3339 in UTC with seconds, as metav1.Time writes it.
std::string FormatTime(TimePoint time);
std::optional<TimePoint> ParseTime(std::string_view text);

}  // namespace core
