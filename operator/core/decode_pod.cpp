#include <charconv>

#include "core/json.h"
#include "core/model.h"
#include "core/names.h"

namespace core {
namespace {

int ParseNumber(const std::string& text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0 ? value : 0;
}

std::optional<Termination> DecodeTermination(const Json& state) {
  const Json& json = Get(state, "terminated");
  if (!json.is_object()) return std::nullopt;
  Termination termination;
  termination.exit_code = GetInt(json, "exitCode").value_or(0);
  termination.reason = GetString(json, "reason");
  termination.message = Truncated(GetString(json, "message"), 1024);
  termination.finished = GetTime(json, "finishedAt");
  return termination;
}

Container DecodeContainer(const Json& json, bool init) {
  Container container;
  container.name = GetString(json, "name");
  container.init = init;
  container.restarts = std::max(0, GetInt(json, "restartCount").value_or(0));
  const Json& state = Get(json, "state");
  const Json& waiting = Get(state, "waiting");
  container.waiting_reason = GetString(waiting, "reason");
  container.waiting_message = Truncated(GetString(waiting, "message"), 1024);
  container.terminated = DecodeTermination(state);
  container.last_terminated = DecodeTermination(Get(json, "lastState"));
  return container;
}

PodPhase ParsePhase(const std::string& text) {
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  if (text == "Unknown") return PodPhase::kUnknown;
  return PodPhase::kPending;
}

// What pods and Services have in common.
template <class T>
bool DecodeMetadata(const Json& json, T* object) {
  const Json& metadata = Get(json, "metadata");
  object->ns = GetString(metadata, "namespace");
  object->name = GetString(metadata, "name");
  object->uid = GetString(metadata, "uid");
  object->resource_version = GetString(metadata, "resourceVersion");
  object->job_label = GetString(Get(metadata, "labels"), kJobNameLabel);
  if (const Json& owners = Get(metadata, "ownerReferences"); owners.is_array()) {
    for (const Json& owner : owners) {
      if (!GetBool(owner, "controller")) continue;
      object->owner_uid = GetString(owner, "uid");
      object->owner_kind = GetString(owner, "kind");
      object->owner_name = GetString(owner, "name");
      break;
    }
  }
  return !object->name.empty();
}

bool Deleting(const Json& json) {
  return Get(Get(json, "metadata"), "deletionTimestamp").is_string();
}

void DecodeConditions(const Json& conditions, Pod* pod) {
  if (!conditions.is_array()) return;
  for (const Json& condition : conditions) {
    const std::string type = GetString(condition, "type");
    const bool is_true = GetString(condition, "status") == "True";
    if (auto time = GetTime(condition, "lastTransitionTime"); time > pod->changed) {
      pod->changed = time;
    }
    if (type == "Ready") pod->ready = is_true;
    if (type == "DisruptionTarget" && is_true) {
      pod->disruption = GetString(condition, "reason");
      if (pod->disruption.empty()) pod->disruption = "DisruptionTarget";
    }
    if (type == "PodScheduled" && !is_true && GetString(condition, "reason") == "Unschedulable") {
      pod->unschedulable = Truncated(GetString(condition, "message"), 1024);
      if (pod->unschedulable.empty()) pod->unschedulable = "Unschedulable";
    }
  }
}

}  // namespace

base::Result<Pod> DecodePod(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  Pod pod;
  if (!DecodeMetadata(json, &pod)) {
    return base::Error{base::ErrorCode::kInvalidArgument, "not a Pod: no metadata.name", {}};
  }
  const Json& metadata = Get(json, "metadata");
  const Json& labels = Get(metadata, "labels");
  if (auto replica = ParsePodName(pod.owner_name, pod.name)) {
    pod.type = replica->type;
    pod.index = replica->index;
    const Json expected = SelectorLabels(pod.owner_name, pod.type, pod.index);
    for (const auto& [key, value] : expected.items()) {
      if (GetString(labels, key.c_str()) != value) pod.labels_intact = false;
    }
  }
  pod.attempt = ParseNumber(GetString(labels, kAttemptLabel));
  const Json& annotations = Get(metadata, "annotations");
  pod.replacement = ParseNumber(GetString(annotations, kReplacementAnnotation));
  pod.incarnation = GetString(annotations, kIncarnationAnnotation);
  pod.created = GetTime(metadata, "creationTimestamp").value_or(TimePoint{});
  pod.deletion = GetTime(metadata, "deletionTimestamp");
  pod.forced = pod.deletion && GetInt(metadata, "deletionGracePeriodSeconds") == 0;
  pod.node = GetString(Get(json, "spec"), "nodeName");
  const Json& status = Get(json, "status");
  pod.phase = ParsePhase(GetString(status, "phase"));
  pod.started = GetTime(status, "startTime");
  pod.reason = GetString(status, "reason");
  pod.message = Truncated(GetString(status, "message"), 1024);
  DecodeConditions(Get(status, "conditions"), &pod);
  for (bool init : {true, false}) {
    const Json& containers = Get(status, init ? "initContainerStatuses" : "containerStatuses");
    if (!containers.is_array()) continue;
    for (const Json& container : containers) {
      pod.containers.push_back(DecodeContainer(container, init));
    }
  }
  return pod;
}

base::Result<Service> DecodeService(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  Service service;
  if (!DecodeMetadata(json, &service)) {
    return base::Error{base::ErrorCode::kInvalidArgument, "not a Service: no metadata.name", {}};
  }
  service.deleting = Deleting(json);
  return service;
}

base::Result<PodGroup> DecodePodGroup(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  PodGroup group;
  if (!DecodeMetadata(json, &group)) {
    return base::Error{base::ErrorCode::kInvalidArgument, "not a PodGroup: no metadata.name", {}};
  }
  group.phase = GetString(Get(json, "status"), "phase");
  group.spec_json = Dump(Get(json, "spec"));
  group.deleting = Deleting(json);
  return group;
}

base::Result<Autoscaler> DecodeAutoscaler(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  Autoscaler autoscaler;
  if (!DecodeMetadata(json, &autoscaler)) {
    return base::Error{
        base::ErrorCode::kInvalidArgument, "not a HorizontalPodAutoscaler: no metadata.name", {}};
  }
  autoscaler.spec_json = Dump(Get(json, "spec"));
  autoscaler.deleting = Deleting(json);
  return autoscaler;
}

}  // namespace core
