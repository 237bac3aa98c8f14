// behaviour.md section 5: suspend, resume, managedBy, deletion.
#include "core/policy/suspend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Scene Running() {
  Scene scene(MakeJob(true, 2));
  scene.Step();
  scene.StartAll();
  scene.Settle();
  scene.Advance(seconds{60});
  return scene;
}

Scene Suspended() {
  Scene scene = Running();
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Step();
  return scene;
}

TEST(Suspend, CreatedSuspended) {
  Json job = MakeJob(true, 2);
  job["spec"]["runPolicy"]["suspend"] = true;
  Scene scene(job);
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status"));
  EXPECT_EQ(scene.conditions(), "[Created=T, Suspended=T]");
  const Json& condition = *scene.Condition("Suspended");
  EXPECT_EQ(condition["reason"], "PyTorchJobSuspended");
  EXPECT_EQ(condition["message"], "PyTorchJob mnist is suspended.");
  EXPECT_FALSE(scene.status().contains("startTime"));
  EXPECT_THAT(scene.NewEvents(),
              ElementsAre("Normal PyTorchJobSuspended: PyTorchJob mnist is suspended."));
  scene.Advance(seconds{3600});
  scene.Set("/spec/runPolicy/suspend", false);
  scene.Step();
  EXPECT_EQ(scene.status()["startTime"], "2026-03-01T13:00:00Z");
  EXPECT_EQ(scene.conditions(), "[Suspended=F, Created=T]");
}

TEST(Suspend, EverythingGoes) {
  Scene scene = Running();
  scene.Exit("mnist-worker-1", 0);
  scene.Settle();
  scene.NewEvents();
  scene.Set("/spec/runPolicy/suspend", true);
  EXPECT_THAT(Lines(scene.Step()),
              ElementsAre("status", "delete Pod mnist-master-0", "delete Pod mnist-worker-0",
                          "delete Pod mnist-worker-1", "delete Service mnist-master-0"));
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Suspended=T]");
  EXPECT_EQ((*scene.Condition("Running"))["reason"], "PyTorchJobSuspended");
  EXPECT_EQ((*scene.Condition("Running"))["message"], "PyTorchJob mnist is suspended.");
  EXPECT_EQ(scene.status()["startTime"], "2026-03-01T12:00:00Z") << "stays until the resume";
  EXPECT_EQ(scene.status()["replicaStatuses"]["Master"]["active"], 1) << "it still terminates";
  scene.Settle();
  EXPECT_THAT(scene.Children(), IsEmpty());
  EXPECT_FALSE(scene.status()["replicaStatuses"]["Master"].contains("active"));
  EXPECT_FALSE(scene.status()["replicaStatuses"]["Worker"].contains("active"));
  EXPECT_EQ(scene.status()["summary"], "0/3");
  EXPECT_THAT(scene.NewEvents(),
              ElementsAre("Normal PyTorchJobSuspended: PyTorchJob mnist is suspended."));
}

TEST(Suspend, APodThatWasPendingCountsWhileItTerminates) {
  Scene scene(MakeJob(true, 0));
  scene.Step();
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Step();
  EXPECT_EQ(scene.status()["replicaStatuses"]["Master"]["active"], 1);
  scene.Settle();
  EXPECT_FALSE(scene.status()["replicaStatuses"]["Master"].contains("active"));
}

TEST(Suspend, ResumeStartsAfreshWithTheCurrentTemplate) {
  Scene scene = Suspended();
  scene.Settle();
  scene.NewEvents();
  scene.Advance(seconds{60});
  scene.Set("/spec/pytorchReplicaSpecs/Worker/template/spec/nodeSelector", {{"zone", "b"}});
  scene.Set("/spec/runPolicy/suspend", false);
  EXPECT_THAT(Lines(scene.Step()),
              ElementsAre("status", "create Service mnist-master-0", "create Pod mnist-master-0",
                          "create Pod mnist-worker-0", "create Pod mnist-worker-1"));
  EXPECT_EQ(scene.conditions(), "[Running=F, Suspended=F, Created=T]");
  const Json& condition = *scene.Condition("Suspended");
  EXPECT_EQ(condition["reason"], "PyTorchJobResumed");
  EXPECT_EQ(condition["message"], "PyTorchJob mnist is resumed.");
  EXPECT_EQ(scene.status()["startTime"], "2026-03-01T12:02:00Z");
  EXPECT_EQ(scene.pods["mnist-worker-0"]["spec"]["nodeSelector"]["zone"], "b");
  EXPECT_THAT(scene.NewEvents(),
              ElementsAre("Normal PyTorchJobResumed: PyTorchJob mnist is resumed."));
  scene.StartAll();
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Suspended=F, Running=T]");
}

TEST(Suspend, ResumedWhilePodsStillTerminate) {
  Scene scene = Suspended();
  scene.Set("/spec/runPolicy/suspend", false);
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Running=F, Suspended=F, Created=T]")
      << "what still runs is of before";
  EXPECT_THAT(scene.Children(), Contains("Pod mnist-master-0 (terminating)"));
  scene.Settle();
  EXPECT_THAT(scene.Children(), ElementsAre("Pod mnist-master-0", "Pod mnist-worker-0",
                                            "Pod mnist-worker-1", "Service mnist-master-0"));
  EXPECT_EQ(scene.status()["restartCount"], 0);
}

TEST(Suspend, SuspendedAndResumedWithinOneSecond) {
  Scene scene(MakeJob(true, 1));
  scene.Step();
  scene.StartAll();
  scene.Step();
  scene.Set("/spec/runPolicy/suspend", true);
  for (const Action& action : scene.Look().actions) {
    if (std::holds_alternative<WriteStatus>(action)) scene.Apply(action);  // died before deletes
  }
  scene.Set("/spec/runPolicy/suspend", false);
  scene.Settle();
  EXPECT_GT(scene.status()["startTime"].get<std::string>(), "2026-03-01T12:00:00Z");
  for (const auto& [name, pod] : scene.pods) EXPECT_EQ(pod["status"]["phase"], "Pending") << name;
  EXPECT_EQ(scene.pods.size(), 2u);
}

TEST(Suspend, CompletedReplicasRunAgainAfterAResume) {
  Scene scene = Running();
  scene.Exit("mnist-worker-0", 0);
  scene.Settle();
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Settle();
  scene.Set("/spec/runPolicy/suspend", false);
  scene.Settle();
  EXPECT_TRUE(scene.pods.contains("mnist-worker-0"));
  EXPECT_FALSE(scene.status()["replicaStatuses"]["Worker"].contains("completedIndexes"));
}

TEST(Suspend, ASuccessOfBeforeIsNotTakenForOneOfNow) {
  Scene scene = Suspended();
  scene.Exit("mnist-master-0", 0);
  scene.Set("/spec/runPolicy/suspend", false);
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Running=F, Suspended=F, Created=T]");
  EXPECT_EQ(scene.pods["mnist-master-0"]["status"]["phase"], "Pending");
}

TEST(Suspend, RestartingBecomesSuspended) {
  Scene scene = Running();
  scene.DeleteByHand("mnist-worker-0");
  scene.Step();
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=F, Suspended=T]");
  EXPECT_EQ((*scene.Condition("Restarting"))["reason"], "PyTorchJobSuspended");
}

TEST(Suspend, DeadlineAndTtlDoNotRunMeanwhile) {
  Json job = MakeJob(true, 0);
  job["spec"]["runPolicy"] = {{"activeDeadlineSeconds", 60}, {"ttlSecondsAfterFinished", 60}};
  Scene scene(job);
  scene.Step();
  scene.Advance(seconds{30});
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Settle();
  EXPECT_EQ(scene.Look().look_again_at, std::nullopt);
  scene.Advance(seconds{100000});
  EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  scene.Set("/spec/runPolicy/suspend", false);
  scene.Settle();
  EXPECT_EQ(scene.Condition("Failed"), nullptr);
  EXPECT_EQ(scene.Look().look_again_at, scene.now + seconds{60}) << "a whole deadline again";
}

TEST(Suspend, AFailureThatNoPassSawIsForgotten) {
  Scene scene = Running();
  scene.Exit("mnist-worker-0", 1);
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Suspended=T]");
}

TEST(Suspend, NothingIsRepeated) {
  Scene scene = Suspended();
  scene.Settle();
  scene.NewEvents();
  for (int i = 0; i < 20; ++i) {
    scene.Advance(seconds{60});
    scene.RestartOperator();
    EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  }
}

struct ManagedCase {
  const char* by;
  bool ours;
};

TEST(ManagedBy, AnotherControllersJobIsNotTouchedInAnyState) {
  for (const ManagedCase& c : {ManagedCase{"kubeflow.org/training-operator", true},
                               {"kueue.x-k8s.io/multikueue", false},
                               {"", false},
                               {"example.com/other", false}}) {
    SCOPED_TRACE(c.by);
    Json job = MakeJob(true, 1);
    job["spec"]["runPolicy"]["managedBy"] = c.by;
    Scene scene(job);
    EXPECT_EQ(Lines(scene.Look()).empty(), !c.ours);
    if (c.ours) continue;
    // In another order than ours, as a remote cluster's operator wrote it.
    scene.job["status"]["conditions"] =
        FromYaml(R"([{type: Running, status: "True"}, {type: Created, status: "True"}])");
    EXPECT_THAT(Lines(scene.Look()), IsEmpty());
    scene.job["status"]["conditions"].push_back(FromYaml("{type: Succeeded, status: \"True\"}"));
    scene.Set("/spec/runPolicy/ttlSecondsAfterFinished", 0);
    EXPECT_THAT(Lines(scene.Look()), IsEmpty());
    scene.Set("/spec/runPolicy/suspend", true);
    EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  }
}

TEST(Deletion, IsLeftToTheGarbageCollector) {
  Scene scene = Running();
  scene.Exit("mnist-worker-0", 1);
  scene.job["metadata"]["deletionTimestamp"] = FormatTime(scene.now);
  std::swap(scene.job["status"]["conditions"][0], scene.job["status"]["conditions"][1]);
  EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  EXPECT_EQ(scene.Look().look_again_at, std::nullopt);
}

}  // namespace
}  // namespace core::test
