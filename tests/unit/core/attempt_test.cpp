// behaviour.md section 4, row "one of many fails": runPolicy.restartScope: Job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json MakeScopedJob(const std::string& policy = "OnFailure", int workers = 2) {
  Json job = MakeJob(true, workers, policy);
  job["spec"]["runPolicy"]["restartScope"] = "Job";
  return job;
}

Scene Running(Json job = MakeScopedJob()) {
  Scene scene(std::move(job));
  scene.Step();
  scene.StartAll();
  scene.Settle();
  scene.NewEvents();
  scene.Advance(seconds{20});
  return scene;
}

std::vector<std::string> Attempts(const Scene& scene) {
  std::vector<std::string> attempts;
  for (const auto& [name, pod] : scene.pods) {
    attempts.push_back(pod["metadata"]["labels"]["training.kubeflow.org/attempt"]);
  }
  return attempts;
}

TEST(Attempt, TheFirstPodsAreOfAttemptZero) {
  Scene scene = Running();
  EXPECT_THAT(Attempts(scene), ElementsAre("0", "0", "0"));
  EXPECT_FALSE(scene.status().contains("attempt"));
}

TEST(Attempt, OneFailureReplacesAllPods) {
  Scene scene = Running();
  scene.Exit("mnist-worker-1", 1);
  const Plan plan = scene.Step();
  EXPECT_THAT(Lines(plan), ElementsAre("status", "delete Pod mnist-master-0",
                                       "delete Pod mnist-worker-0", "delete Pod mnist-worker-1"));
  const Json patch = Json::parse(std::get<WriteStatus>(plan.actions[0]).patch)["status"];
  EXPECT_EQ(patch["attempt"], 1);
  EXPECT_EQ(patch["restartCount"], 1);
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  const std::string message =
      "PyTorchJob mnist is restarting because 1 Worker replica(s) failed. Pod mnist-worker-1 "
      "exited with code 1 (Error).";
  EXPECT_EQ((*scene.Condition("Restarting"))["message"], message);
  EXPECT_THAT(scene.NewEvents(), ElementsAre("Warning PyTorchJobRestarting: " + message));
  scene.Settle();
  EXPECT_THAT(Attempts(scene), ElementsAre("1", "1", "1"));
  scene.Start("mnist-master-0");
  scene.Start("mnist-worker-0");
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  scene.StartAll();
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
  EXPECT_THAT(scene.NewEvents(), IsEmpty());
}

TEST(Attempt, NothingOfTheNewOneStartsBeforeTheOldOneIsGone) {
  Scene scene = Running();
  scene.Exit("mnist-worker-1", 1);
  scene.Step();
  scene.Remove("mnist-master-0");
  scene.Remove("mnist-worker-1");
  EXPECT_THAT(scene.Step().actions, ::testing::SizeIs(::testing::Le(1)));
  EXPECT_THAT(scene.Children(),
              ElementsAre("Pod mnist-worker-0 (terminating)", "Service mnist-master-0"));
  scene.Remove("mnist-worker-0");
  scene.Step();
  EXPECT_THAT(Attempts(scene), ElementsAre("1", "1", "1"));
}

TEST(Attempt, AllFailuresOfOneAttemptAreOneRetry) {
  Json job = MakeScopedJob();
  job["spec"]["runPolicy"]["backoffLimit"] = 1;
  Scene scene = Running(job);
  scene.Exit("mnist-worker-0", 1);
  scene.Exit("mnist-worker-1", 137);
  scene.Step();
  EXPECT_EQ(scene.status()["restartCount"], 1);
  scene.Exit("mnist-master-0", 143);  // killed by us
  scene.Settle();
  EXPECT_EQ(scene.status()["restartCount"], 1);
  EXPECT_EQ(scene.status()["attempt"], 1);
  scene.StartAll();
  scene.Settle();
  scene.Exit("mnist-worker-0", 1);
  scene.Step();
  EXPECT_EQ((*scene.Condition("Failed"))["reason"], "BackoffLimitExceeded");
}

TEST(Attempt, ADisruptionIsANewAttemptAndNoRetry) {
  for (int how = 0; how < 4; ++how) {
    SCOPED_TRACE(how);
    Json job = MakeScopedJob();
    job["spec"]["runPolicy"]["backoffLimit"] = 0;
    Scene scene = Running(job);
    if (how == 0) scene.Refuse("mnist-worker-0", "Evicted");
    if (how == 1) scene.DeleteByHand("mnist-worker-0");
    if (how == 2) scene.Remove("mnist-worker-0");
    if (how == 3) {
      scene.Remove("mnist-worker-0");
      scene.RestartOperator();
    }
    scene.Settle();
    EXPECT_THAT(Attempts(scene), ElementsAre("1", "1", "1"));
    EXPECT_EQ(scene.status()["restartCount"], 0);
    EXPECT_EQ(scene.status().contains("lastFailure"), how == 0);
  }
}

TEST(Attempt, WhatThePolicyDoesNotRetryFailsTheJob) {
  struct {
    const char* policy;
    int code;
    bool fails;
  } cases[] = {{"Never", 137, true},
               {"ExitCode", 1, true},
               {"ExitCode", 137, false},
               {"OnFailure", 1, false},
               {"Always", 1, false}};
  for (const auto& c : cases) {
    SCOPED_TRACE(std::string(c.policy) + std::to_string(c.code));
    Scene scene = Running(MakeScopedJob(c.policy));
    scene.Exit("mnist-worker-0", c.code);
    scene.Settle();
    EXPECT_EQ(scene.Condition("Failed") != nullptr, c.fails);
  }
}

TEST(Attempt, CompletedReplicasRunAgain) {
  Scene scene = Running();
  scene.Exit("mnist-worker-0", 0);
  scene.Settle();
  EXPECT_EQ(scene.status()["replicaStatuses"]["Worker"]["completedIndexes"], "0");
  scene.Exit("mnist-worker-1", 1);
  scene.Settle();
  EXPECT_THAT(Attempts(scene), ElementsAre("1", "1", "1"));
  EXPECT_FALSE(scene.status()["replicaStatuses"]["Worker"].contains("completedIndexes"));
}

TEST(Attempt, LaterOnesAreDelayedAndTheFailedPodStaysForItsLogs) {
  Scene scene = Running();
  scene.Exit("mnist-worker-1", 1);
  scene.Settle();
  EXPECT_THAT(Attempts(scene), ElementsAre("1", "1", "1")) << "the first at once";
  scene.StartAll();
  scene.Settle();
  scene.Advance(seconds{5});
  scene.Exit("mnist-worker-1", 1);
  const TimePoint end = scene.now;
  scene.Settle();
  EXPECT_THAT(scene.Children(), ElementsAre("Pod mnist-worker-1", "Service mnist-master-0"))
      << "those that ran are gone, the failed one is kept";
  EXPECT_EQ(scene.Look().look_again_at, end + seconds{10});
  scene.now = end + seconds{10};
  scene.Settle();
  EXPECT_THAT(Attempts(scene), ElementsAre("2", "2", "2"));
  EXPECT_EQ(scene.status()["attempt"], 2);
}

TEST(Attempt, AnAttemptThatRanForTenMinutesStartsAnew) {
  Scene scene = Running();
  for (int i = 0; i < 3; ++i) {
    scene.Exit("mnist-worker-1", 1);
    scene.Advance(seconds{100});
    scene.Settle();
    scene.StartAll();
    scene.Settle();
  }
  scene.Advance(seconds{600});
  scene.Exit("mnist-worker-1", 1);
  scene.Settle();
  EXPECT_THAT(Attempts(scene), ElementsAre("4", "4", "4")) << "at once";
}

TEST(Attempt, AResumeKeepsTheNumberAndStartsAnew) {
  Scene scene = Running();
  scene.Exit("mnist-worker-1", 1);
  scene.Settle();
  scene.StartAll();
  scene.Settle();
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Settle();
  scene.Advance(seconds{30});
  scene.Set("/spec/runPolicy/suspend", false);
  scene.Settle();
  EXPECT_EQ(scene.status()["attempt"], 1);
  EXPECT_THAT(Attempts(scene), ElementsAre("1", "1", "1"));
  scene.Start("mnist-master-0");
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Suspended=F, Running=T]")
      << "nothing is being replaced";
  scene.StartAll();
  scene.Settle();
  scene.Exit("mnist-worker-1", 1);
  scene.Settle();
  EXPECT_THAT(Attempts(scene), ElementsAre("2", "2", "2")) << "the first at once";
}

TEST(Attempt, ScalingIsNoFailure) {
  Scene scene = Running();
  scene.Set("/spec/pytorchReplicaSpecs/Worker/replicas", 1);
  scene.Settle();
  scene.Set("/spec/pytorchReplicaSpecs/Worker/replicas", 3);
  scene.Settle();
  EXPECT_FALSE(scene.status().contains("attempt"));
  EXPECT_EQ(scene.pods.size(), 4u);
}

TEST(Attempt, ASuccessDuringTheDelayDoesNotCountForTheNextAttempt) {
  Scene scene = Running();
  scene.Exit("mnist-worker-1", 1);
  scene.Step();
  scene.Exit("mnist-master-0", 0);  // of the attempt that is over
  scene.Settle();
  EXPECT_EQ(scene.Condition("Succeeded"), nullptr);
  EXPECT_THAT(Attempts(scene), ElementsAre("1", "1", "1"));
}

}  // namespace
}  // namespace core::test
