// behaviour.md section 4: when a lost replica is replaced, and pods that do not go.
#include "core/policy/replace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kWorker[] = "mnist-worker-0";

Scene Running(const std::string& policy = "ExitCode", int workers = 1) {
  Scene scene(MakeJob(true, workers, policy));
  scene.Step();
  scene.StartAll();
  scene.Settle();
  return scene;
}

std::string NumberOf(const Scene& scene, const std::string& pod = kWorker) {
  return scene.pods.at(pod)["metadata"]["annotations"].value(
      "pytorch-operator.kubeflow.org/replacement", "");
}

TEST(Replace, TheFirstAtOnceTheNextAfterTwiceTheLastDelay) {
  Scene scene = Running();
  for (int delay : {0, 10, 20, 40, 80, 160, 320, 600, 600}) {
    SCOPED_TRACE(delay);
    scene.Advance(seconds{5});
    scene.Exit(kWorker, 137);
    const TimePoint end = scene.now;
    const std::string failed_uid = scene.pods[kWorker]["metadata"]["uid"];
    if (delay > 0) {
      scene.Settle();
      EXPECT_EQ(scene.pods[kWorker]["metadata"]["uid"], failed_uid) << "stays, for its logs";
      EXPECT_EQ(scene.Look().look_again_at, end + seconds{delay});
      scene.now = end + seconds{delay} - std::chrono::milliseconds{1};
      scene.Settle();
      EXPECT_EQ(scene.pods[kWorker]["metadata"]["uid"], failed_uid);
      scene.RestartOperator();  // the failed pod says when it ended
      scene.now = end + seconds{delay};
    }
    scene.Settle();
    ASSERT_TRUE(scene.pods.contains(kWorker));
    EXPECT_NE(scene.pods[kWorker]["metadata"]["uid"], failed_uid);
    scene.Start(kWorker);
    scene.Settle();
    EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
  }
  EXPECT_EQ(NumberOf(scene), "9");
}

TEST(Replace, DisruptionsAreDelayedAlike) {
  Scene scene = Running();
  scene.Refuse(kWorker, "OutOfcpu");
  scene.Settle();
  EXPECT_EQ(NumberOf(scene), "1");
  scene.Advance(seconds{1});
  scene.Refuse(kWorker, "OutOfcpu");
  const TimePoint end = scene.now;
  scene.Settle();
  EXPECT_EQ(scene.Look().look_again_at, end + seconds{10});
}

TEST(Replace, AFullNodeMakesFewerThanFivePodsAMinute) {
  Scene scene = Running();
  std::set<std::string> uids;
  scene.Refuse(kWorker, "OutOfpods");
  for (const TimePoint stop = scene.now + seconds{60}; scene.now < stop;) {
    scene.Settle();
    uids.insert(scene.pods[kWorker]["metadata"]["uid"].get<std::string>());
    if (scene.pods[kWorker]["status"]["phase"] == "Pending") scene.Refuse(kWorker, "OutOfpods");
    scene.Advance(seconds{1});
  }
  EXPECT_LT(uids.size(), 5u + 1u);
  EXPECT_GT(uids.size(), 2u);
}

TEST(Replace, ADeletedPodsSuccessorIsDelayedFromTheMomentItWasGone) {
  Scene scene = Running();
  scene.Exit(kWorker, 137);
  scene.Settle();
  scene.Start(kWorker);
  scene.Settle();
  scene.Advance(seconds{100});
  scene.DeleteByHand(kWorker);
  scene.Step();
  scene.Advance(seconds{7});
  scene.Remove(kWorker);
  scene.Step();
  EXPECT_FALSE(scene.pods.contains(kWorker));
  EXPECT_EQ(scene.Look().look_again_at, scene.now + seconds{10});
  scene.Advance(seconds{10});
  scene.Settle();
  EXPECT_EQ(NumberOf(scene), "2");
}

TEST(Replace, APodThatRanForTenMinutesStartsAnew) {
  Scene scene = Running();
  for (int i = 0; i < 3; ++i) {
    scene.Exit(kWorker, 137);
    scene.Advance(seconds{600});
    scene.Settle();
    scene.Start(kWorker);
    scene.Settle();
  }
  EXPECT_EQ(NumberOf(scene), "3");
  scene.Advance(seconds{600});
  scene.Exit(kWorker, 137);
  scene.Settle();
  EXPECT_EQ(scene.pods[kWorker]["status"]["phase"], "Pending") << "at once";
  EXPECT_EQ(NumberOf(scene), "1");
}

TEST(Replace, CountingStartsAnewWhenTheNumberIsLost) {
  Scene scene = Running();
  for (int i = 0; i < 3; ++i) {
    scene.Exit(kWorker, 137);
    scene.Advance(seconds{100});
    scene.Settle();
    scene.Start(kWorker);
    scene.Settle();
  }
  scene.Remove(kWorker);
  scene.RestartOperator();
  scene.Settle();
  EXPECT_EQ(scene.pods[kWorker]["status"]["phase"], "Pending") << "at once";
}

TEST(Replace, EachIndexCountsForItself) {
  Scene scene = Running("ExitCode", 2);
  scene.Exit(kWorker, 137);
  scene.Settle();
  scene.StartAll();
  scene.Settle();
  scene.Exit("mnist-worker-1", 137);
  scene.Settle();
  EXPECT_EQ(scene.pods["mnist-worker-1"]["status"]["phase"], "Pending");
  EXPECT_EQ(NumberOf(scene, "mnist-worker-1"), "1");
}

TEST(Replace, EventsAreNotRepeatedWhileThePodWaitsForItsDelay) {
  Scene scene = Running();
  scene.Exit(kWorker, 137);
  scene.Settle();
  scene.Start(kWorker);
  scene.Settle();
  scene.NewEvents();
  scene.Exit(kWorker, 139);
  scene.Settle();
  EXPECT_THAT(scene.NewEvents(),
              ElementsAre("Warning PyTorchJobRestarting: PyTorchJob mnist is restarting because 1 "
                          "Worker replica(s) failed. Pod mnist-worker-0 exited with code 139 "
                          "(Error)."));
  for (int i = 0; i < 9; ++i) {
    scene.Advance(seconds{1});
    EXPECT_THAT(Lines(scene.Step()), IsEmpty());
  }
  EXPECT_EQ(scene.status()["restartCount"], 2);
}

TEST(Replace, ADisruptedMasterIsReplacedToo) {
  Scene scene = Running("Never");
  scene.Refuse("mnist-master-0", "NodeLost");
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  scene.StartAll();
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
}

TEST(Replace, AMasterThatWentWhileNoOperatorLooked) {
  Scene scene = Running("Never");
  scene.Remove("mnist-master-0");
  scene.RestartOperator();
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  EXPECT_EQ((*scene.Condition("Restarting"))["message"],
            "PyTorchJob mnist is restarting because 1 Master replica(s) failed. Pod mnist-master-0 "
            "is gone.");
  scene.StartAll();
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
}

TEST(Replace, TheLatestFailureIsTheLastOneWhateverTheOrderOfPasses) {
  Scene scene = Running("OnFailure", 2);
  scene.Advance(seconds{10});
  scene.Exit(kWorker, 5);
  scene.Advance(seconds{10});
  scene.RestartInPlace("mnist-worker-1", 6);
  scene.Settle();
  EXPECT_EQ(scene.status()["lastFailure"]["exitCode"], 6);
}

TEST(Replace, AnUnknownPhaseOfTheMasterIsWaitedFor) {
  Scene scene = Running();
  scene.pods["mnist-master-0"]["status"]["phase"] = "Unknown";
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
}

// Worker 0 on node-1, deleted at the start of the scene with 30 s of grace.
Scene Terminating() {
  Scene scene = Running();
  scene.pods[kWorker]["spec"]["nodeName"] = "node-1";
  scene.DeleteByHand(kWorker);
  scene.Step();
  return scene;
}

TEST(Stuck, NothingBeforeGraceAndTimeoutHavePassed) {
  Scene scene = Terminating();
  EXPECT_EQ(scene.Look().look_again_at, kStart + seconds{330});
  scene.now = kStart + seconds{329};
  EXPECT_THAT(scene.Look().ask_nodes, IsEmpty());
}

TEST(Stuck, ThenTheNodeIsLookedUpEveryThirtySeconds) {
  Scene scene = Terminating();
  scene.now = kStart + seconds{330};
  EXPECT_THAT(scene.Look().ask_nodes, ElementsAre("node-1"));
  EXPECT_EQ(scene.Look().look_again_at, scene.now + seconds{30});
  scene.nodes["node-1"] = NodeState::kHealthy;
  EXPECT_THAT(Lines(scene.Step()), IsEmpty());
  EXPECT_EQ(scene.Look().look_again_at, scene.now + seconds{30});
}

TEST(Stuck, OnADeadNodeThePodIsDeletedByForceAndReplaced) {
  for (NodeState state : {NodeState::kGone, NodeState::kNotReady, NodeState::kOutOfService}) {
    Scene scene = Terminating();
    scene.now = kStart + seconds{330};
    scene.nodes["node-1"] = state;
    const Plan plan = scene.Look();
    EXPECT_THAT(Lines(plan), ElementsAre("force Pod mnist-worker-0"));
    EXPECT_EQ(std::get<Delete>(plan.actions[0]).uid, scene.pods[kWorker]["metadata"]["uid"]);
    for (const Action& action : plan.actions) scene.Apply(action);
    scene.Settle();
    EXPECT_EQ(scene.pods[kWorker]["status"]["phase"], "Pending");
    EXPECT_EQ(scene.status()["restartCount"], 0);
  }
}

TEST(Stuck, ZeroTurnsItOff) {
  Scene scene = Terminating();
  scene.options.stuck_pod_timeout = seconds{0};
  scene.now = kStart + seconds{100000};
  scene.nodes["node-1"] = NodeState::kGone;
  EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  EXPECT_THAT(scene.Look().ask_nodes, IsEmpty());
}

TEST(Stuck, AFinalizerIsNotFoughtWith) {
  Scene scene = Terminating();
  scene.now = kStart + seconds{330};
  scene.nodes["node-1"] = NodeState::kGone;
  scene.pods[kWorker]["metadata"]["deletionGracePeriodSeconds"] = 0;
  EXPECT_THAT(Lines(scene.Look()), IsEmpty());
}

TEST(Stuck, AlsoAfterTheEndAndWhileSuspended) {
  for (bool suspend : {false, true}) {
    Scene scene = Terminating();
    if (suspend) {
      scene.Set("/spec/runPolicy/suspend", true);
    } else {
      scene.Exit("mnist-master-0", 0);
    }
    scene.Step();
    scene.now = kStart + seconds{400};
    EXPECT_THAT(scene.Look().ask_nodes, ElementsAre("node-1"));
  }
}

}  // namespace
}  // namespace core::test
