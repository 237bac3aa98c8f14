// behaviour.md sections 1 and 3: taken names and other obstacles to creation.
#include "core/children.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using base::ErrorCode;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kQuota[] =
    "pods \"mnist-worker-0\" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=1, "
    "limited: pods=1";

// The master exists, worker 0 was refused just now.
Scene Refused(ErrorCode code = ErrorCode::kForbidden, const std::string& message = kQuota) {
  Scene scene(MakeJob(true, 2));
  for (const Action& action : scene.Look().actions) {
    auto* create = std::get_if<Create>(&action);
    if (create == nullptr || !create->name.starts_with("mnist-worker")) scene.Apply(action);
  }
  scene.create_errors.push_back({Kind::kPod, "mnist-worker-0", code, message, scene.now, 1});
  return scene;
}

TEST(Children, WhatTheApiServerSaidIsInTheStatusWithinOnePass) {
  Scene scene = Refused();
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status"));
  EXPECT_EQ(scene.conditions(), "[Created=T, ReplicaFailure=T]");
  const Json& failure = *scene.Condition("ReplicaFailure");
  EXPECT_EQ(failure["reason"], "FailedCreatePod");
  EXPECT_EQ(failure["message"], kQuota);
  EXPECT_THAT(scene.NewEvents(),
              ElementsAre(std::string("Warning FailedCreatePod: Error creating: ") + kQuota));
  scene.Start("mnist-master-0");
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, ReplicaFailure=T, Running=T]");
}

TEST(Children, TheNextTryComesByItselfAndFailsWithoutNews) {
  Scene scene = Refused();
  scene.Step();
  scene.NewEvents();
  EXPECT_EQ(scene.Look().look_again_at, kStart + seconds{1});
  scene.Advance(seconds{1});
  EXPECT_THAT(Lines(scene.Look()),
              ElementsAre("create Pod mnist-worker-0", "create Pod mnist-worker-1"));
  scene.create_errors[0].at = scene.now;
  scene.create_errors[0].tries = 2;
  EXPECT_THAT(Lines(scene.Step()), IsEmpty());
  EXPECT_EQ(scene.Look().look_again_at, scene.now + seconds{2});
}

TEST(Children, ItIsOverWhenEverythingExists) {
  Scene scene = Refused();
  scene.Step();
  scene.NewEvents();
  scene.Advance(seconds{1});
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[ReplicaFailure=F, Created=T]");
  EXPECT_EQ((*scene.Condition("ReplicaFailure"))["reason"], "SuccessfulCreatePod");
  scene.StartAll();
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, ReplicaFailure=F, Running=T]");
  EXPECT_THAT(scene.NewEvents(), IsEmpty());
}

TEST(Children, ANewOperatorKeepsTheConditionUntilItHasTried) {
  Scene scene = Refused();
  scene.Step();
  scene.RestartOperator();
  EXPECT_THAT(Lines(scene.Look()),
              ElementsAre("create Pod mnist-worker-0", "create Pod mnist-worker-1"));
}

TEST(Children, ADelayedReplacementIsNoFailureToCreate) {
  Scene scene = Refused();
  scene.Step();
  scene.Advance(seconds{1});
  for (const Action& action : scene.Look().actions) scene.Apply(action);
  scene.StartAll();
  scene.Exit("mnist-worker-1", 1);
  scene.pods["mnist-worker-1"]["metadata"]["annotations"]
            ["pytorch-operator.kubeflow.org/replacement"] = "3";
  scene.Step();
  scene.Remove("mnist-worker-1");
  scene.Settle();
  EXPECT_FALSE(scene.pods.contains("mnist-worker-1")) << "its delay runs";
  EXPECT_EQ((*scene.Condition("ReplicaFailure"))["status"], "False");
}

TEST(Children, SuspensionAndTheEndEndIt) {
  Scene scene = Refused();
  scene.Step();
  Scene ended = scene;
  ended.Exit("mnist-master-0", 0);
  ended.Step();
  EXPECT_EQ(ended.conditions(), "[Created=T, ReplicaFailure=F, Succeeded=T]");
  EXPECT_EQ((*ended.Condition("ReplicaFailure"))["reason"], "PyTorchJobSucceeded");
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, ReplicaFailure=F, Suspended=T]");
  EXPECT_EQ((*scene.Condition("ReplicaFailure"))["reason"], "PyTorchJobSuspended");
}

TEST(Children, AForbiddenServiceHoldsThePodsBack) {
  Scene scene(MakeJob(true, 1));
  scene.Apply(scene.Look().actions[0]);
  scene.create_errors.push_back({Kind::kService, "mnist-master-0", ErrorCode::kForbidden,
                                 "services \"mnist-master-0\" is forbidden", scene.now, 1});
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status"));
  EXPECT_EQ((*scene.Condition("ReplicaFailure"))["reason"], "FailedCreateService");
  scene.Advance(seconds{1});
  scene.Settle();
  EXPECT_EQ((*scene.Condition("ReplicaFailure"))["reason"], "SuccessfulCreateService");
  EXPECT_EQ(scene.pods.size(), 2u);
}

TEST(Children, ATakenPodNameBlocksThatPodOnly) {
  Scene scene(MakeJob(true, 2));
  scene.holders = {
      {Kind::kPod, "mnist-worker-0", "Pod demo/mnist-worker-0, controlled by nobody", false}};
  EXPECT_THAT(Lines(scene.Step()),
              ElementsAre("status", "create Service mnist-master-0", "create Pod mnist-master-0",
                          "create Pod mnist-worker-1"));
  EXPECT_EQ(scene.conditions(), "[Created=T, ReplicaFailure=T]");
  const std::string message =
      "pods \"mnist-worker-0\" already exists: held by Pod demo/mnist-worker-0, controlled by "
      "nobody";
  EXPECT_EQ((*scene.Condition("ReplicaFailure"))["message"], message);
  EXPECT_THAT(scene.NewEvents(),
              ElementsAre("Warning FailedCreatePod: Error creating: " + message));
  scene.holders.clear();
  scene.Settle();
  EXPECT_TRUE(scene.pods.contains("mnist-worker-0"));
  EXPECT_EQ(scene.conditions(), "[ReplicaFailure=F, Created=T]");
}

TEST(Children, ATakenServiceName) {
  Scene scene(MakeJob(true, 1));
  scene.holders = {{Kind::kService, "mnist-master-0",
                    "Service demo/mnist-master-0, controlled by PyTorchJob mnist (uid old)", true}};
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status"));
  EXPECT_EQ((*scene.Condition("ReplicaFailure"))["message"],
            "services \"mnist-master-0\" already exists: held by Service demo/mnist-master-0, "
            "controlled by PyTorchJob mnist (uid old), which is terminating");
  scene.holders.clear();
  scene.Settle();
  EXPECT_EQ(scene.pods.size(), 2u);
}

TEST(Children, ATakenNameThatOnlyTheApiServerKnowsBlocksThatPodOnly) {
  Scene scene = Refused(ErrorCode::kAlreadyExists, "pods \"mnist-worker-0\" already exists");
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status", "create Pod mnist-worker-1"));
}

TEST(Children, NothingOfOthersIsTouched) {
  Scene scene(MakeJob(true, 1));
  scene.pods["mnist-worker-0"] = FromYaml(R"({metadata: {name: mnist-worker-0, uid: theirs,
      ownerReferences: [{kind: PyTorchJob, name: mnist, uid: another, controller: true}]},
      status: {phase: Failed}})");
  scene.holders = {{Kind::kPod, "mnist-worker-0", "Pod demo/mnist-worker-0", false}};
  const Json before = scene.pods["mnist-worker-0"];
  scene.Settle();
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Settle();
  EXPECT_EQ(scene.pods["mnist-worker-0"], before);
}

TEST(Children, AVanishedServiceIsMadeAgain) {
  Scene scene(MakeJob(true, 1));
  scene.Step();
  scene.StartAll();
  scene.Settle();
  scene.services.clear();
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("create Service mnist-master-0"));
}

TEST(Children, ATerminatingServiceIsWaitedFor) {
  Scene scene(MakeJob(true, 1));
  scene.Apply(scene.Look().actions[0]);
  scene.Apply(scene.Look().actions[0]);
  scene.services["mnist-master-0"]["metadata"]["deletionTimestamp"] = FormatTime(scene.now);
  EXPECT_THAT(Lines(scene.Step()), IsEmpty());
  scene.RemoveTerminating();
  EXPECT_THAT(Lines(scene.Step()), Contains("create Service mnist-master-0"));
}

TEST(Children, DelaysOfFailedCreates) {
  EXPECT_EQ(CreateRetryDelay(ErrorCode::kForbidden, 1), seconds{1});
  EXPECT_EQ(CreateRetryDelay(ErrorCode::kForbidden, 4), seconds{8});
  EXPECT_EQ(CreateRetryDelay(ErrorCode::kForbidden, 100), seconds{60});
  EXPECT_EQ(CreateRetryDelay(ErrorCode::kAlreadyExists, 100), seconds{10});
  EXPECT_EQ(CreateRetryDelay(ErrorCode::kInvalid, 100), seconds{300});
}

}  // namespace
}  // namespace core::test
