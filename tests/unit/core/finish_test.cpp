// behaviour.md section 5: cleanPodPolicy, the Service's end, ttl, deadline.
#include "core/policy/finish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Ways for a job to end.
struct Way {
  const char* name;
  bool success;
  const char* reason;
};

constexpr Way kWays[] = {{"Succeeded", true, "PyTorchJobSucceeded"},
                         {"Failed", false, "PyTorchJobFailed"},
                         {"Backoff", false, "BackoffLimitExceeded"},
                         {"Deadline", false, "DeadlineExceeded"}};

// worker-0 pending, worker-1 running, worker-2 succeeded, worker-3 failed with the job when that is
// how it ends; the master runs, or has ended it.
Scene End(const Way& way, const char* clean_pod_policy) {
  const std::string name = way.name;
  Json job = MakeJob(true, 4, name == "Failed" ? "Never" : "ExitCode");
  auto& policy = job["spec"]["runPolicy"];
  policy = Json::object();
  if (*clean_pod_policy != 0) policy["cleanPodPolicy"] = clean_pod_policy;
  if (name == "Backoff") policy["backoffLimit"] = 0;
  if (name == "Deadline") policy["activeDeadlineSeconds"] = 60;
  Scene scene(job);
  scene.Step();
  for (const char* pod : {"mnist-master-0", "mnist-worker-1", "mnist-worker-2", "mnist-worker-3"}) {
    scene.Start(pod);
  }
  scene.Settle();
  scene.Advance(seconds{30});
  scene.Exit("mnist-worker-2", 0);
  scene.Settle();
  scene.Advance(seconds{30});
  if (name == "Succeeded") scene.Exit("mnist-master-0", 0);
  if (name == "Failed" || name == "Backoff") scene.Exit("mnist-worker-3", 137);
  scene.Step();
  return scene;
}

class CleanPodPolicyOf : public ::testing::TestWithParam<std::tuple<Way, const char*>> {};

TEST_P(CleanPodPolicyOf, ForEachPhase) {
  const auto& [way, policy] = GetParam();
  const std::string p = policy;
  Scene scene = End(way, policy);
  const std::string end = way.success ? "Succeeded" : "Failed";
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, " + end + "=T]");
  EXPECT_EQ((*scene.Condition(end))["reason"], way.reason);
  EXPECT_EQ(scene.status()["completionTime"], "2026-03-01T12:01:00Z");

  const bool active_go = p == "All" || p == "Running" || (p.empty() && !way.success);
  const bool ended_go = p == "All";
  std::vector<std::string> expected;
  for (const auto& [name, pod] : scene.pods) {
    const std::string phase = pod["status"]["phase"];
    const bool ended = phase == "Succeeded" || phase == "Failed";
    expected.push_back("Pod " + name + ((ended ? ended_go : active_go) ? " (terminating)" : ""));
  }
  ASSERT_EQ(expected.size(), 5u);
  expected.push_back("Service mnist-master-0");  // pods still run, or terminate
  EXPECT_EQ(scene.Children(), expected);

  scene.Settle();
  for (const auto& [name, pod] : Scene(scene).pods) {
    const std::string phase = pod["status"]["phase"];
    if (phase == "Pending") scene.Exit(name, 1);
    if (phase == "Running") scene.Exit(name, 0);
  }
  scene.Settle();
  EXPECT_THAT(scene.services, IsEmpty()) << "nothing runs any more";
  EXPECT_THAT(Lines(scene.Look()), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Table, CleanPodPolicyOf,
                         ::testing::Combine(::testing::ValuesIn(kWays),
                                            ::testing::Values("", "All", "Running", "None")),
                         [](const auto& info) {
                           const char* policy = std::get<1>(info.param);
                           return std::string(std::get<0>(info.param).name) +
                                  (*policy == 0 ? "NotSet" : policy);
                         });

TEST(Finish, AFinishedJobNeverCreatesAnything) {
  for (const Way& way : kWays) {
    Scene scene = End(way, "All");
    scene.Settle();
    EXPECT_THAT(scene.Children(), IsEmpty());
    scene.RestartOperator();
    scene.Set("/spec/pytorchReplicaSpecs/Worker/replicas", 9);
    scene.Settle();
    EXPECT_THAT(scene.Children(), IsEmpty());
  }
}

TEST(Finish, ATerminatingPodKeepsTheService) {
  Scene scene = End(kWays[1], "");
  scene.RemoveTerminating();
  EXPECT_THAT(scene.services, ::testing::SizeIs(1));
  scene.Step();
  EXPECT_THAT(scene.Children(), ::testing::Contains("Service mnist-master-0 (terminating)"));
}

TEST(Finish, BackoffAndDeadlineSayWhy) {
  EXPECT_EQ((*End(kWays[2], "").Condition("Failed"))["message"],
            "Job mnist has failed because it has reached the specified backoff limit. Pod "
            "mnist-worker-3 exited with code 137 (Error).");
  Scene scene = End(kWays[3], "");
  const std::string message =
      "Job mnist has failed because it was active longer than specified deadline";
  EXPECT_EQ((*scene.Condition("Failed"))["message"], message);
  EXPECT_THAT(scene.NewEvents(), ElementsAre("Warning PyTorchJobFailed: " + message));
}

TEST(Finish, TtlDeletesTheJobByItself) {
  for (const Way& way : kWays) {
    Scene scene = End(way, "None");
    scene.Settle();
    scene.Set("/spec/runPolicy/ttlSecondsAfterFinished", 100);
    scene.Settle();
    EXPECT_EQ(scene.Look().look_again_at, kStart + seconds{160});
    scene.now = kStart + seconds{159};
    EXPECT_THAT(Lines(scene.Look()), IsEmpty());
    scene.RestartOperator();
    scene.now = kStart + seconds{5000};  // it passed while no operator ran
    const Plan plan = scene.Step();
    EXPECT_THAT(Lines(plan), ElementsAre("delete PyTorchJob mnist"));
    EXPECT_EQ(std::get<Delete>(plan.actions[0]).uid, "job-uid");
  }
}

TEST(Finish, TtlZeroIsAtOnce) {
  Json job = MakeJob(true, 0);
  job["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = 0;
  Scene scene(job);
  scene.Step();
  scene.Exit("mnist-master-0", 0);
  EXPECT_THAT(Lines(scene.Step()),
              ElementsAre("status", "delete Service mnist-master-0", "delete PyTorchJob mnist"));
}

TEST(Finish, ACompletionTimeThatAnotherOperatorForgot) {
  Json job = MakeJob(true, 0);
  job["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = 3600;
  job["status"] = FromYaml(R"({conditions: [
      {type: Created, status: "True", lastTransitionTime: "2026-03-01T11:00:00Z"},
      {type: Failed, status: "True", lastTransitionTime: "2026-03-01T11:30:00Z"}]})");
  Scene scene(job);
  scene.Step();
  EXPECT_EQ(scene.status()["completionTime"], "2026-03-01T11:30:00Z");
  EXPECT_EQ(scene.Look().look_again_at, kStart + seconds{1800});
}

TEST(Finish, WhatAnotherOperatorLeftTrueBesideTheEnd) {
  Json job = MakeJob(true, 0);
  job["status"] = FromYaml(R"({conditions: [
      {type: Created, status: "True", lastTransitionTime: "2026-03-01T11:00:00Z"},
      {type: Succeeded, status: "True", lastTransitionTime: "2026-03-01T11:30:00Z"},
      {type: Restarting, status: "True", reason: R, lastTransitionTime: "2026-03-01T11:10:00Z"}]})");
  Scene scene(job);
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Succeeded=T]");
  EXPECT_EQ((*scene.Condition("Restarting"))["reason"], "R");
}

TEST(Finish, TheDeadlineActsByItself) {
  Json job = MakeJob(true, 1);
  job["spec"]["runPolicy"]["activeDeadlineSeconds"] = 60;
  Scene scene(job);
  scene.Step();
  scene.StartAll();
  scene.Settle();
  EXPECT_EQ(scene.Look().look_again_at, kStart + seconds{60});
  scene.now = kStart + seconds{60} - std::chrono::milliseconds{1};
  EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  scene.RestartOperator();
  scene.now = kStart + seconds{60};
  scene.Settle();
  EXPECT_EQ((*scene.Condition("Failed"))["reason"], "DeadlineExceeded");
}

TEST(Finish, SuccessAtTheDeadlineIsSuccess) {
  Json job = MakeJob(true, 0);
  job["spec"]["runPolicy"]["activeDeadlineSeconds"] = 60;
  Scene scene(job);
  scene.Step();
  scene.Exit("mnist-master-0", 0);
  scene.Advance(seconds{500});
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Succeeded=T]");
}

TEST(Finish, LeftoversOfAScaleDownGoWhateverThePolicy) {
  Json job = MakeJob(true, 2, "Never");
  job["spec"]["runPolicy"]["cleanPodPolicy"] = "None";
  Scene scene(job);
  scene.Step();
  scene.StartAll();
  scene.Settle();
  scene.Set("/spec/pytorchReplicaSpecs/Worker/replicas", 1);
  scene.Exit("mnist-master-0", 0);
  scene.Settle();
  EXPECT_THAT(scene.Children(),
              ElementsAre("Pod mnist-master-0", "Pod mnist-worker-0", "Service mnist-master-0"));
}

TEST(Finish, AnInvalidJobFailsWithEveryPath) {
  Json job = MakeJob(true, 1);
  job["spec"]["runPolicy"] = {{"backoffLimit", -1}, {"activeDeadlineSeconds", 0}};
  Scene scene(job);
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status"));
  EXPECT_EQ(scene.conditions(), "[Created=T, Failed=T]");
  const Json& failed = *scene.Condition("Failed");
  EXPECT_EQ(failed["reason"], "PyTorchJobFailedValidation");
  const std::string message = failed["message"];
  EXPECT_THAT(message, ::testing::StartsWith("PyTorchJob failed validation because "));
  EXPECT_THAT(message, HasSubstr("spec.runPolicy.backoffLimit"));
  EXPECT_THAT(message, HasSubstr("spec.runPolicy.activeDeadlineSeconds"));
  EXPECT_THAT(scene.NewEvents(), ElementsAre("Warning PyTorchJobFailedValidation: " + message));
  EXPECT_THAT(scene.transitions, ElementsAre(Transition::kCreated, Transition::kFailed));
}

TEST(Finish, AJobThatBecomesInvalidLetsGoOfItsPods) {
  Scene scene(MakeJob(true, 1));
  scene.Step();
  scene.StartAll();
  scene.Settle();
  scene.Set("/spec/runPolicy/backoffLimit", -1);
  scene.Settle();
  EXPECT_THAT(scene.Children(), IsEmpty());
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Failed=T]");
}

TEST(Finish, ATemplateOfAnyShapeIsNoCrash) {
  for (const char* shape : {"7", "{spec: 7}", "{spec: {containers: 7}}", "{metadata: {labels: 7}}",
                            "{spec: {containers: [7, null]}}"}) {
    Json job = MakeJob(true, 1);
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = FromYaml(shape);
    Scene scene(job);
    scene.Step();
    EXPECT_EQ(scene.conditions(), "[Created=T, Failed=T]") << shape;
  }
}

}  // namespace
}  // namespace core::test
