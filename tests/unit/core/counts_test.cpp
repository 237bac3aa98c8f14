// behaviour.md section 3: replicaStatuses, summary, waiting, accountedPods, one write a pass.
#include "core/counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kMasterSelector[] =
    "training.kubeflow.org/job-name=mnist,training.kubeflow.org/operator-name="
    "pytorchjob-controller,training.kubeflow.org/replica-type=master";
constexpr char kWorkerSelector[] =
    "training.kubeflow.org/job-name=mnist,training.kubeflow.org/operator-name="
    "pytorchjob-controller,training.kubeflow.org/replica-type=worker";

Json Counts(const Scene& scene, const char* type) {
  Json counts = scene.status()["replicaStatuses"][type];
  counts.erase("selector");
  return counts;
}

TEST(Counts, EveryReplicaTypeWithItsSelectorFromTheFirstWriteOn) {
  for (bool suspended : {false, true}) {
    Json job = MakeJob(true, 2);
    job["spec"]["runPolicy"]["suspend"] = suspended;
    Scene scene(job);
    scene.Step();
    EXPECT_EQ(scene.status()["replicaStatuses"],
              Json({{"Master", {{"selector", kMasterSelector}}},
                    {"Worker", {{"selector", kWorkerSelector}}}}));
    EXPECT_EQ(scene.status()["summary"], "0/3");
    EXPECT_EQ(scene.status()["restartCount"], 0);
  }
}

TEST(Counts, NoWorkersBesideAMaster) {
  Json job = MakeJob(true, 1);
  job["spec"]["pytorchReplicaSpecs"]["Worker"]["replicas"] = 0;
  Scene scene(job);
  scene.Step();
  EXPECT_THAT(scene.Children(), ElementsAre("Pod mnist-master-0", "Service mnist-master-0"));
  EXPECT_EQ(scene.status()["summary"], "0/1");
  EXPECT_TRUE(scene.status()["replicaStatuses"].contains("Worker"));
}

TEST(Counts, PodsAsTheyAre) {
  Scene scene(MakeJob(true, 6));
  scene.Step();
  scene.Start("mnist-master-0");
  scene.Start("mnist-worker-0");
  scene.Start("mnist-worker-1");
  scene.pods["mnist-worker-1"]["status"]["conditions"][0]["status"] = "False";
  scene.Exit("mnist-worker-2", 0);
  scene.Exit("mnist-worker-4", 0);
  scene.Exit("mnist-worker-5", 0);
  scene.Step();
  EXPECT_EQ(Counts(scene, "Master"), FromYaml("{active: 1, ready: 1}"));
  EXPECT_EQ(Counts(scene, "Worker"),
            FromYaml("{active: 2, ready: 1, succeeded: 3, completedIndexes: \"2,4,5\"}"));
  EXPECT_EQ(scene.status()["summary"], "3/7");
}

TEST(Counts, AFailedPodCountsUntilItIsGone) {
  Scene scene(MakeJob(true, 1, "ExitCode"));
  scene.Step();
  scene.StartAll();
  scene.Step();
  scene.Exit("mnist-worker-0", 137);
  scene.Step();
  EXPECT_EQ(Counts(scene, "Worker"), FromYaml("{failed: 1}"));
  scene.Settle();
  EXPECT_EQ(Counts(scene, "Worker"), FromYaml("{}"));
}

TEST(Counts, ATerminatingPodIsActiveUntilItIsGone) {
  Scene scene(MakeJob(true, 1));
  scene.Step();
  scene.StartAll();
  scene.DeleteByHand("mnist-worker-0");
  scene.Step();
  EXPECT_EQ(Counts(scene, "Worker"), FromYaml("{active: 1, ready: 1}"));
  EXPECT_EQ(scene.status()["summary"], "1/2") << "but it is not what is wanted";
}

TEST(Counts, AfterTheEndToo) {
  Scene scene(MakeJob(true, 2));
  scene.Step();
  scene.StartAll();
  scene.Step();
  scene.Exit("mnist-master-0", 0);
  scene.Settle();
  EXPECT_EQ(Counts(scene, "Worker"), FromYaml("{active: 2, ready: 2}"));
  scene.Exit("mnist-worker-0", 0);
  scene.Settle();
  EXPECT_EQ(Counts(scene, "Worker"),
            FromYaml("{active: 1, ready: 1, succeeded: 1, completedIndexes: \"0\"}"));
  EXPECT_EQ(scene.status()["summary"], "2/3");
}

TEST(Counts, AFailureThatDecidedTheJobStaysWhenItsPodGoes) {
  Json job = MakeJob(true, 1, "Never");
  job["spec"]["runPolicy"]["cleanPodPolicy"] = "All";
  Scene scene(job);
  scene.Step();
  scene.StartAll();
  scene.Exit("mnist-worker-0", 1);
  scene.Settle();
  EXPECT_THAT(scene.Children(), IsEmpty());
  EXPECT_EQ(Counts(scene, "Worker"), FromYaml("{failed: 1}"));
  EXPECT_EQ(Counts(scene, "Master"), FromYaml("{}"));
}

TEST(Counts, WaitingIsThatOfTheLowestRankAndOneEventAChange) {
  Scene scene(MakeJob(true, 1));
  scene.Step();
  scene.Wait("mnist-master-0", "ContainerCreating", "");
  scene.Wait("mnist-worker-0", "ImagePullBackOff", "Back-off pulling image \"mnist:1\"");
  scene.Step();
  EXPECT_EQ(scene.status()["waiting"], FromYaml(R"({pod: mnist-worker-0, reason: ImagePullBackOff,
                         message: "Back-off pulling image \"mnist:1\""})"));
  EXPECT_THAT(scene.NewEvents(), ElementsAre("Warning ImagePullBackOff: Pod mnist-worker-0 is "
                                             "waiting: Back-off pulling image \"mnist:1\""));
  scene.Advance(seconds{5});
  scene.Wait("mnist-worker-0", "ErrImagePull", "registry says no");
  EXPECT_THAT(Lines(scene.Step()), IsEmpty()) << "the kubelet alternates between the two";
  scene.Wait("mnist-master-0", "Unschedulable", "0/3 nodes are available");
  scene.Step();
  EXPECT_EQ(scene.status()["waiting"], FromYaml(R"({pod: mnist-master-0, reason: Unschedulable,
                         message: 0/3 nodes are available})"));
  EXPECT_THAT(scene.NewEvents(), ElementsAre("Warning Unschedulable: Pod mnist-master-0 is "
                                             "waiting: 0/3 nodes are available"));
  scene.Advance(seconds{5});
  scene.Wait("mnist-master-0", "Unschedulable", "0/4 nodes are available");
  scene.Step();
  EXPECT_EQ(scene.status()["waiting"]["message"], "0/4 nodes are available");
  EXPECT_THAT(scene.NewEvents(), IsEmpty()) << "the same reason is not news";
  scene.Advance(seconds{5});
  scene.Start("mnist-master-0");
  scene.Start("mnist-worker-0");
  scene.Step();
  EXPECT_FALSE(scene.status().contains("waiting"));
}

TEST(Counts, NothingWaitsAfterTheEndOrWhileSuspended) {
  Scene scene(MakeJob(true, 1, "Never"));
  scene.Step();
  scene.Start("mnist-master-0");
  scene.Wait("mnist-worker-0", "ImagePullBackOff", "");
  scene.Step();
  EXPECT_TRUE(scene.status().contains("waiting"));
  Scene ended = scene;
  ended.Exit("mnist-master-0", 0);
  ended.Step();
  EXPECT_FALSE(ended.status().contains("waiting"));
  scene.Set("/spec/runPolicy/suspend", true);
  scene.Step();
  EXPECT_FALSE(scene.status().contains("waiting"));
}

TEST(Counts, WritesOfCountsAloneAreASecondApart) {
  Scene scene(MakeJob(true, 2));
  scene.remembers_writes = true;
  scene.Step();
  scene.Advance(seconds{5});
  scene.Start("mnist-master-0");
  scene.Step();
  scene.now += std::chrono::milliseconds{400};
  scene.Start("mnist-worker-0");
  const Plan early = scene.Look();
  EXPECT_TRUE(early.Empty());
  EXPECT_EQ(early.look_again_at, *scene.status_written + std::chrono::milliseconds{1000});
  scene.now = *early.look_again_at;
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status"));
  EXPECT_EQ(scene.status()["summary"], "2/3");
}

TEST(Counts, AChangeOfStateIsWrittenAtOnce) {
  Scene scene(MakeJob(true, 1));
  scene.remembers_writes = true;
  scene.Step();
  scene.Start("mnist-master-0");
  EXPECT_EQ(scene.status_written, scene.now);
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status"));
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
}

TEST(Counts, TouchingAJobTwentyTimesWritesNothing) {
  Scene scene(MakeJob(true, 2));
  scene.Step();
  scene.StartAll();
  scene.Settle();
  for (int i = 0; i < 20; ++i) {
    scene.Advance(seconds{7});
    scene.job["metadata"]["resourceVersion"] = std::to_string(1000 + i);
    if (i % 5 == 0) scene.RestartOperator();
    EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  }
}

TEST(Counts, AccountedPodsAreWrittenBeforeTheDeleteAndGoWithTheirPod) {
  Scene scene(MakeJob(true, 1, "ExitCode"));
  scene.Step();
  scene.StartAll();
  scene.Step();
  const std::string uid = scene.pods["mnist-worker-0"]["metadata"]["uid"];
  scene.Exit("mnist-worker-0", 137);
  const Plan plan = scene.Look();
  ASSERT_THAT(Lines(plan), ElementsAre("status", "delete Pod mnist-worker-0"));
  const Json patch = Json::parse(std::get<WriteStatus>(plan.actions[0]).patch)["status"];
  EXPECT_EQ(patch["accountedPods"], Json::array({Json{{"uid", uid}, {"failed", true}}}));
  EXPECT_EQ(patch["restartCount"], 1);
  scene.Settle();
  EXPECT_FALSE(scene.status().contains("accountedPods"));
  EXPECT_EQ(scene.status()["restartCount"], 1);
}

TEST(Counts, RestartsAreExactOverCrashesOfTheOperator) {
  Scene scene(MakeJob(true, 1));
  scene.Step();
  scene.StartAll();
  scene.Step();
  for (int i = 1; i <= 3; ++i) {
    scene.Advance(seconds{20});
    scene.RestartInPlace("mnist-worker-0", 1);
    scene.Settle();
    scene.RestartOperator();
    scene.Settle();
    EXPECT_EQ(scene.status()["restartCount"], i);
    EXPECT_EQ(scene.status()["accountedPods"][0]["restarts"], i);
  }
  scene.DeleteByHand("mnist-worker-0");
  scene.Settle();
  scene.Start("mnist-worker-0");
  scene.Settle();
  scene.RestartInPlace("mnist-worker-0", 1);
  scene.Settle();
  EXPECT_EQ(scene.status()["restartCount"], 4);
}

TEST(Counts, InitContainersAreNotCounted) {
  Scene scene(MakeJob(true, 0));
  scene.Step();
  scene.pods["mnist-master-0"]["status"]["initContainerStatuses"] =
      FromYaml("[{name: init, restartCount: 5, state: {}}]");
  scene.Step();
  EXPECT_EQ(scene.status()["restartCount"], 0);
}

TEST(Counts, WhileTheListIsFullNoFurtherFailedPodIsReplaced) {
  constexpr int kWorkers = 502;
  Scene scene(MakeJob(true, kWorkers, "ExitCode"));
  Snapshot snapshot = scene.Observe();
  Plan plan = Decide(snapshot, scene.now, scene.options);
  for (const Action& action : plan.actions) scene.Apply(action);
  scene.StartAll();
  for (int i = 0; i < kWorkers; ++i) scene.Exit("mnist-worker-" + std::to_string(i), 137);
  plan = scene.Look();
  for (const Action& action : plan.actions) scene.Apply(action);
  EXPECT_EQ(scene.status()["accountedPods"].size(), 500u);
  EXPECT_EQ(scene.status()["restartCount"], 500);
  EXPECT_EQ(plan.actions.size(), 501u) << "the status and 500 deletes";
  scene.RemoveTerminating();
  plan = scene.Look();
  for (const Action& action : plan.actions) scene.Apply(action);
  EXPECT_EQ(scene.status()["restartCount"], 502);
}

TEST(Counts, WithTheOldCrdOnlyWhatItKnowsIsWritten) {
  Scene scene(MakeJob(true, 1, "ExitCode"));
  scene.options.crd_outdated = true;
  scene.Step();
  scene.StartAll();
  scene.Step();
  scene.Exit("mnist-worker-0", 137);
  scene.Settle();
  scene.StartAll();
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
  for (const char* own : {"summary", "observedGeneration", "restartCount", "accountedPods",
                          "lastFailure", "attempt", "waiting"}) {
    EXPECT_FALSE(scene.status().contains(own)) << own;
  }
  EXPECT_FALSE(scene.status()["replicaStatuses"]["Worker"].contains("ready"));
}

}  // namespace
}  // namespace core::test
