// behaviour.md section 4, row "backoffLimit".
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::StartsWith;

Scene Running(const std::string& policy, int limit, int workers = 1) {
  Json job = MakeJob(true, workers, policy);
  job["spec"]["runPolicy"]["backoffLimit"] = limit;
  Scene scene(job);
  scene.Step();
  scene.StartAll();
  scene.Step();
  return scene;
}

bool Failed(const Scene& scene) {
  const Json* failed = scene.Condition("Failed");
  if (failed != nullptr) {
    EXPECT_EQ((*failed)["reason"], "BackoffLimitExceeded");
    EXPECT_THAT((*failed)["message"].get<std::string>(),
                StartsWith("Job mnist has failed because it has reached the specified backoff "
                           "limit"));
  }
  return failed != nullptr;
}

// One more failure of worker 0, and its replacement if there is one.
void FailOnce(Scene& scene) {
  scene.Advance(seconds{20});
  scene.Exit("mnist-worker-0", 137);
  scene.Settle();
  if (Failed(scene)) return;
  scene.Advance(seconds{600});  // past any delay
  scene.Settle();
  ASSERT_TRUE(scene.pods.contains("mnist-worker-0"));
  scene.StartAll();
  scene.Settle();
}

class BackoffLimit : public ::testing::TestWithParam<int> {};

TEST_P(BackoffLimit, OverReplacementsTheLastRetryGetsItsChance) {
  for (const char* policy : {"ExitCode", "OnFailure", "Always"}) {
    Scene scene = Running(policy, GetParam());
    for (int i = 0; i < GetParam(); ++i) {
      FailOnce(scene);
      ASSERT_FALSE(Failed(scene)) << policy << " after " << i + 1;
    }
    EXPECT_EQ(scene.status()["restartCount"], GetParam());
    EXPECT_EQ(scene.conditions(),
              GetParam() == 0 ? "[Created=T, Running=T]" : "[Created=T, Restarting=F, Running=T]");
    FailOnce(scene);
    EXPECT_TRUE(Failed(scene)) << policy;
    EXPECT_EQ(scene.status()["lastFailure"]["exitCode"], 137);
  }
}

TEST_P(BackoffLimit, OverInPlaceRestartsAndNewOperators) {
  Scene scene = Running("OnFailure", GetParam());
  for (int i = 0; i < GetParam(); ++i) {
    scene.Advance(seconds{20});
    scene.RestartInPlace("mnist-worker-0", 1);
    scene.RestartOperator();
    scene.Settle();
    ASSERT_FALSE(Failed(scene)) << i + 1;
  }
  scene.Advance(seconds{20});
  scene.RestartInPlace("mnist-worker-0", 1);
  scene.Settle();
  EXPECT_TRUE(Failed(scene)) << "the restart after the last allowed one";
}

TEST_P(BackoffLimit, ACrashLoopHasFailedOnceMoreThanItRestarted) {
  Scene scene = Running("OnFailure", GetParam());
  if (GetParam() > 0) {
    scene.CrashLoop("mnist-worker-0", GetParam() - 1, 1);
    scene.Settle();
    EXPECT_FALSE(Failed(scene));
  }
  scene.CrashLoop("mnist-worker-0", GetParam(), 1);
  scene.Settle();
  EXPECT_TRUE(Failed(scene));
  EXPECT_EQ((*scene.Condition("Failed"))["message"],
            "Job mnist has failed because it has reached the specified backoff limit. Pod "
            "mnist-worker-0 exited with code 1 (Error).");
}

INSTANTIATE_TEST_SUITE_P(Limits, BackoffLimit, ::testing::Values(0, 1, 3));

TEST(Backoff, ACrashLoopAfterExitCodeZeroIsNoFailureYet) {
  Scene scene = Running("Always", 1);
  scene.CrashLoop("mnist-worker-0", 1, 0);
  scene.Settle();
  EXPECT_FALSE(Failed(scene));
  scene.CrashLoop("mnist-worker-0", 2, 0);
  scene.Settle();
  EXPECT_TRUE(Failed(scene)) << "but restarts are retries, whatever ended before them";
}

TEST(Backoff, RestartsAndReplacementsAreOneCount) {
  Scene scene = Running("OnFailure", 2, 2);
  scene.RestartInPlace("mnist-worker-1", 1);
  scene.Settle();
  FailOnce(scene);
  EXPECT_FALSE(Failed(scene));
  EXPECT_EQ(scene.status()["restartCount"], 2);
  scene.RestartInPlace("mnist-master-0", 1);
  scene.Settle();
  EXPECT_TRUE(Failed(scene));
}

TEST(Backoff, FailuresOfOnePassCountEach) {
  Scene scene = Running("ExitCode", 1, 2);
  scene.Exit("mnist-worker-0", 137);
  scene.Exit("mnist-worker-1", 137);
  scene.Settle();
  EXPECT_TRUE(Failed(scene));
}

TEST(Backoff, DisruptionsDoNotCount) {
  Scene scene = Running("ExitCode", 0);
  scene.Refuse("mnist-worker-0", "Evicted");
  scene.Settle();
  scene.StartAll();
  scene.Settle();
  scene.DeleteByHand("mnist-worker-0");
  scene.Settle();
  scene.Advance(seconds{600});
  scene.Settle();
  scene.StartAll();
  scene.Settle();
  EXPECT_FALSE(Failed(scene));
  EXPECT_EQ(scene.status()["restartCount"], 0);
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
}

TEST(Backoff, TheCountOutlivesSuspension) {
  Scene scene = Running("ExitCode", 1);
  FailOnce(scene);
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Settle();
  scene.Set("/spec/runPolicy/suspend", false);
  scene.Settle();
  scene.StartAll();
  scene.Settle();
  EXPECT_EQ(scene.status()["restartCount"], 1);
  FailOnce(scene);
  EXPECT_TRUE(Failed(scene));
}

TEST(Backoff, NoLimitWhenNotSet) {
  Scene scene = Running("ExitCode", 0);
  scene.job["spec"]["runPolicy"].erase("backoffLimit");
  for (int i = 0; i < 12; ++i) FailOnce(scene);
  EXPECT_EQ(scene.Condition("Failed"), nullptr);
  EXPECT_EQ(scene.status()["restartCount"], 12);
}

TEST(Backoff, ACompletedReplicasRestartsNoLongerMatterButCount) {
  Scene scene = Running("OnFailure", 1, 2);
  scene.RestartInPlace("mnist-worker-0", 1);
  scene.Settle();
  scene.Exit("mnist-worker-0", 0);
  scene.Settle();
  EXPECT_FALSE(Failed(scene));
  EXPECT_EQ(scene.status()["restartCount"], 1);
}

TEST(Backoff, SuccessWinsOverTheLimit) {
  Scene scene = Running("ExitCode", 0);
  scene.Exit("mnist-master-0", 0);
  scene.Exit("mnist-worker-0", 137);
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Succeeded=T]");
}

}  // namespace
}  // namespace core::test
