// What happens to the pods of a Scene by other hands than the operator's.
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {

Json& Scene::Status(const std::string& pod) {
  EXPECT_TRUE(pods.contains(pod)) << pod;
  return pods[pod]["status"];
}

void Scene::Set(const std::string& pointer, Json value) {
  Json& place = job[Json::json_pointer(pointer)];
  if (place == value) return;
  place = std::move(value);
  if (pointer.starts_with("/spec")) {
    std::erase_if(departed_, [&](const auto& item) { return !Wanted(item.first); });
    job["metadata"]["generation"] = job["metadata"]["generation"].get<int>() + 1;
  }
}

void Scene::Start(const std::string& pod) {
  Json& status = Status(pod);
  status["phase"] = "Running";
  status["startTime"] = FormatTime(now);
  status["conditions"] = Json::array(
      {Json{{"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", FormatTime(now)}}});
  status["containerStatuses"] =
      Json::array({Json{{"name", "pytorch"},
                        {"restartCount", 0},
                        {"state", {{"running", {{"startedAt", FormatTime(now)}}}}}}});
}

void Scene::StartAll() {
  for (const auto& [name, pod] : pods) {
    if (pod["status"]["phase"] == "Pending" && !pod["metadata"].contains("deletionTimestamp")) {
      Start(name);
    }
  }
}

void Scene::Exit(const std::string& pod, int code, const std::string& reason) {
  Json& status = Status(pod);
  if (!status.contains("containerStatuses")) Start(pod);
  status["phase"] = code == 0 ? "Succeeded" : "Failed";
  for (Json& condition : status["conditions"]) {
    condition["status"] = "False";
    condition["lastTransitionTime"] = FormatTime(now);
  }
  for (Json& container : status["containerStatuses"]) {
    container["state"] = {{"terminated",
                           {{"exitCode", code},
                            {"reason", !reason.empty() ? reason
                                       : code == 0     ? "Completed"
                                                       : "Error"},
                            {"finishedAt", FormatTime(now)}}}};
  }
}

void Scene::Refuse(const std::string& pod, const std::string& reason) {
  Json& status = Status(pod);
  status["phase"] = "Failed";
  status["reason"] = reason;
  status["message"] = "the node said " + reason;
  status["conditions"] = Json::array(
      {Json{{"type", "Ready"}, {"status", "False"}, {"lastTransitionTime", FormatTime(now)}}});
  status.erase("containerStatuses");
}

void Scene::RestartInPlace(const std::string& pod, int code) {
  for (Json& container : Status(pod)["containerStatuses"]) {
    container["restartCount"] = container["restartCount"].get<int>() + 1;
    container["lastState"] = {{"terminated",
                               {{"exitCode", code},
                                {"reason", code == 0 ? "Completed" : "Error"},
                                {"finishedAt", FormatTime(now)}}}};
    container["state"] = {{"running", {{"startedAt", FormatTime(now)}}}};
  }
}

void Scene::CrashLoop(const std::string& pod, int restarts, int code) {
  for (Json& container : Status(pod)["containerStatuses"]) {
    container["restartCount"] = restarts;
    container["lastState"] = {
        {"terminated", {{"exitCode", code}, {"reason", "Error"}, {"finishedAt", FormatTime(now)}}}};
    container["state"] = {{"waiting",
                           {{"reason", "CrashLoopBackOff"},
                            {"message", "back-off 10s restarting failed container"}}}};
  }
}

void Scene::Wait(const std::string& pod, const std::string& reason, const std::string& message) {
  Json& status = Status(pod);
  if (reason == "Unschedulable") {
    status["conditions"] = Json::array({Json{{"type", "PodScheduled"},
                                             {"status", "False"},
                                             {"reason", reason},
                                             {"message", message},
                                             {"lastTransitionTime", FormatTime(now)}}});
    return;
  }
  status["containerStatuses"] =
      Json::array({Json{{"name", "pytorch"},
                        {"restartCount", 0},
                        {"state", {{"waiting", {{"reason", reason}, {"message", message}}}}}}});
}

void Scene::DeleteByHand(const std::string& pod) {
  EXPECT_TRUE(pods.contains(pod)) << pod;
  pods[pod]["metadata"]["deletionTimestamp"] = FormatTime(now + seconds{30});
}

}  // namespace core::test
