#include "core/policy/gang.h"

#include <algorithm>

#include "core/covers.h"
#include "core/manifest.h"
#include "core/names.h"
#include "core/quantity.h"

namespace core {
namespace {

constexpr char kVolcano[] = "volcano";

int MinMember(const JobSpec& spec) {
  const auto& scheduling = spec.run_policy.scheduling;
  return scheduling && scheduling->min_available ? *scheduling->min_available
                                                 : spec.TotalReplicas();
}

// Requests of one pod, limits where a request is missing, as the scheduler defaults them.
void AddRequests(const Json& pod_template, int count, std::map<std::string, Quantity>* sum) {
  const Json& containers = Get(Get(pod_template, "spec"), "containers");
  if (!containers.is_array()) return;
  for (const Json& container : containers) {
    const Json& resources = Get(container, "resources");
    Json wanted = Json::object();
    for (const char* kind : {"limits", "requests"}) {
      if (const Json& list = Get(resources, kind); list.is_object()) wanted.update(list);
    }
    for (const auto& [name, value] : wanted.items()) {
      auto quantity = Quantity::Parse(value.is_string() ? value.get<std::string>() : value.dump());
      for (int i = 0; quantity && i < count; ++i) (*sum)[name] += *quantity;
    }
  }
}

Json MinResources(const JobSpec& spec) {
  const auto& scheduling = spec.run_policy.scheduling;
  if (scheduling && !scheduling->min_resources_json.empty()) {
    return Json::parse(scheduling->min_resources_json, nullptr, false);
  }
  std::map<std::string, Quantity> sum;
  int left = MinMember(spec);
  for (const auto& [type, replica] : spec.replicas) {  // masters before workers
    const int count = std::min(left, replica.replicas);
    AddRequests(Json::parse(replica.template_json, nullptr, false), count, &sum);
    left -= count;
  }
  Json resources = Json::object();
  for (const auto& [name, quantity] : sum) resources[name] = quantity.Format();
  return resources;
}

}  // namespace

bool IsVolcano(const Options& options) { return options.gang_scheduler == kVolcano; }

void JoinGang(const Job& job, const Options& options, ReplicaType type, Json* metadata,
              Json* spec) {
  if (options.gang_scheduler.empty()) return;
  if (IsVolcano(options)) {
    (*metadata)["annotations"]["scheduling.k8s.io/group-name"] = job.key.name;
    (*metadata)["annotations"]["volcano.sh/task-spec"] = std::string(LowerName(type));
  } else {
    (*metadata)["labels"]["scheduling.x-k8s.io/pod-group"] = job.key.name;
  }
  if (GetString(*spec, "schedulerName").empty()) {
    (*spec)["schedulerName"] = options.gang_scheduler;
  }
}

std::vector<Event> GangWarnings(const Job& job, const Options& options) {
  if (options.gang_scheduler.empty()) return {};
  for (const auto& [type, replica] : job.spec.replicas) {
    const Json source = Json::parse(replica.template_json, nullptr, false);
    const std::string own = GetString(Get(source, "spec"), "schedulerName");
    if (own.empty() || own == options.gang_scheduler) continue;
    return {{true, "SetPodTemplateSchedulerName",
             "Another scheduler is specified when gang-scheduling is enabled and it will not be "
             "overwritten"}};
  }
  return {};
}

Json PodGroupSpec(const Job& job, const Options& options) {
  const SchedulingPolicy scheduling = job.spec.run_policy.scheduling.value_or(SchedulingPolicy{});
  Json spec = {{"minMember", MinMember(job.spec)}};
  if (Json resources = MinResources(job.spec); !resources.empty()) {
    spec["minResources"] = std::move(resources);
  }
  if (IsVolcano(options)) {
    spec["queue"] = scheduling.queue.empty() ? "default" : scheduling.queue;
    if (!scheduling.priority_class.empty()) spec["priorityClassName"] = scheduling.priority_class;
  } else if (scheduling.schedule_timeout_seconds) {
    spec["scheduleTimeoutSeconds"] = *scheduling.schedule_timeout_seconds;
  }
  return spec;
}

bool WantPodGroup(Draft* draft) {
  if (draft->options.gang_scheduler.empty()) return true;
  const auto& group = draft->snapshot.pod_group;
  Json wanted = PodGroupSpec(draft->job, draft->options);
  if (!group) {
    draft->CreateOwned(Kind::kPodGroup,
                       IsVolcano(draft->options) ? "scheduling.volcano.sh/v1beta1"
                                                 : "scheduling.x-k8s.io/v1alpha1",
                       wanted);
    return !IsVolcano(draft->options);
  }
  if (group->deleting) return false;  // of before a suspension; its going wakes the job
  const Json actual = Json::parse(group->spec_json, nullptr, false);
  // A queue, once given, stays: volcano accounts what runs to it.
  if (!GetString(actual, "queue").empty()) wanted.erase("queue");
  if (!Covers(actual, wanted)) {
    draft->PatchOwned(Kind::kPodGroup, group->name, Dump({{"spec", wanted}}));
  }
  return !IsVolcano(draft->options) || (!group->phase.empty() && group->phase != "Pending");
}

void DropPodGroup(Draft* draft) {
  const auto& group = draft->snapshot.pod_group;
  if (group && !group->deleting) draft->DeleteOwned(Kind::kPodGroup, group->name, group->uid);
}

}  // namespace core
