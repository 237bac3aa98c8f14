#include "core/encode.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace core {

std::string FormatIndexes(const std::set<int>& indexes) {
  std::string text;
  for (auto it = indexes.begin(); it != indexes.end();) {
    int first = *it, last = first;
    for (++it; it != indexes.end() && *it == last + 1; ++it) last = *it;
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last == first + 1) text += "," + std::to_string(last);
    if (last > first + 1) text += "-" + std::to_string(last);
  }
  return text;
}

std::set<int> ParseIndexes(const std::string& text, int limit) {
  std::set<int> indexes;
  auto number = [](std::string_view part) -> int {
    int value = -1;
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size() ? value : -1;
  };
  for (size_t at = 0; at < text.size();) {
    size_t comma = std::min(text.find(',', at), text.size());
    std::string_view part(text.data() + at, comma - at);
    size_t dash = part.find('-');
    int first = number(part.substr(0, dash));
    int last = dash == std::string_view::npos ? first : number(part.substr(dash + 1));
    if (first >= 0 && last < limit) {
      for (int i = first; i <= last; ++i) indexes.insert(i);
    }
    at = comma + 1;
  }
  return indexes;
}

namespace {

Json EncodeConditions(const std::vector<Condition>& conditions) {
  Json array = Json::array();
  for (const Condition& c : conditions) {
    array.push_back({{"type", c.type},
                     {"status", c.status ? "True" : "False"},
                     {"reason", c.reason},
                     {"message", c.message},
                     {"lastUpdateTime", FormatTime(c.last_update)},
                     {"lastTransitionTime", FormatTime(c.last_transition)}});
  }
  return array;
}

void PutCount(Json* object, const char* key, int64_t count) {
  if (count != 0) (*object)[key] = count;
}

void PutText(Json* object, const char* key, const std::string& text) {
  if (!text.empty()) (*object)[key] = text;
}

Json EncodeReplica(const ReplicaStatus& replica, bool own_fields) {
  Json json = Json::object();
  PutCount(&json, "active", replica.active);
  PutCount(&json, "succeeded", replica.succeeded);
  PutCount(&json, "failed", replica.failed);
  PutText(&json, "selector", replica.selector);
  if (own_fields) {
    PutCount(&json, "ready", replica.ready);
    PutText(&json, "completedIndexes", FormatIndexes(replica.completed));
  }
  return json;
}

Json EncodeFailure(const LastFailure& failure) {
  Json json = {{"pod", failure.pod}, {"index", failure.index}, {"time", FormatTime(failure.time)}};
  PutText(&json, "replicaType", failure.replica_type);
  if (failure.exit_code) json["exitCode"] = *failure.exit_code;
  PutText(&json, "reason", failure.reason);
  PutText(&json, "message", failure.message);
  return json;
}

void EncodeOwnFields(const JobStatus& status, Json* json) {
  PutCount(json, "observedGeneration", status.observed_generation);
  PutText(json, "summary", status.summary);
  // Also when 0, for the column; a job without any status has none.
  if (!status.conditions.empty()) (*json)["restartCount"] = status.restart_count;
  PutCount(json, "attempt", status.attempt);
  for (const AccountedPod& pod : status.accounted) {
    Json item = {{"uid", pod.uid}};
    PutCount(&item, "restarts", pod.restarts);
    if (pod.failed) item["failed"] = true;
    (*json)["accountedPods"].push_back(std::move(item));
  }
  if (status.waiting) {
    Json waiting = {{"pod", status.waiting->pod}, {"reason", status.waiting->reason}};
    PutText(&waiting, "message", status.waiting->message);
    (*json)["waiting"] = std::move(waiting);
  }
  if (status.last_failure) (*json)["lastFailure"] = EncodeFailure(*status.last_failure);
}

}  // namespace

Json EncodeStatus(const JobStatus& status, bool own_fields) {
  Json json = Json::object();
  if (!status.conditions.empty()) json["conditions"] = EncodeConditions(status.conditions);
  for (const auto& [type, replica] : status.replicas) {
    json["replicaStatuses"][std::string(Name(type))] = EncodeReplica(replica, own_fields);
  }
  if (status.start_time) json["startTime"] = FormatTime(*status.start_time);
  if (status.completion_time) json["completionTime"] = FormatTime(*status.completion_time);
  if (own_fields) EncodeOwnFields(status, &json);
  return json;
}

Json MergePatch(const Json& from, const Json& to) {
  Json patch = Json::object();
  for (const auto& [key, value] : from.items()) {
    if (!to.contains(key)) patch[key] = nullptr;
  }
  for (const auto& [key, value] : to.items()) {
    auto old = from.find(key);
    if (old == from.end()) {
      patch[key] = value;
    } else if (*old != value) {
      patch[key] = old->is_object() && value.is_object() ? MergePatch(*old, value) : value;
    }
  }
  return patch;
}

}  // namespace core
