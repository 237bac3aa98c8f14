// behaviour.md section 5, "Scaling Worker", and elasticPolicy.metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kReplicas[] = "/spec/pytorchReplicaSpecs/Worker/replicas";

Scene Running(Json job) {
  Scene scene(std::move(job));
  scene.Step();
  scene.StartAll();
  scene.Settle();
  scene.NewEvents();
  scene.Advance(seconds{60});
  return scene;
}

TEST(Scale, UpCreatesTheMissingIndexes) {
  Scene scene = Running(MakeJob(true, 1));
  scene.Set(kReplicas, 3);
  EXPECT_THAT(Lines(scene.Step()),
              ElementsAre("status", "create Pod mnist-worker-1", "create Pod mnist-worker-2"));
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
  EXPECT_EQ(scene.status()["summary"], "2/4");
  EXPECT_EQ(scene.status()["observedGeneration"], 2);
}

TEST(Scale, DownRemovesTheHighest) {
  Scene scene = Running(MakeJob(true, 3));
  scene.Set(kReplicas, 1);
  EXPECT_THAT(Lines(scene.Step()),
              ElementsAre("status", "delete Pod mnist-worker-1", "delete Pod mnist-worker-2"));
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
  EXPECT_EQ(scene.status()["summary"], "2/2");
}

TEST(Scale, RemovedPodsNeverCountAsFailures) {
  Json job = MakeJob(true, 3, "Never");
  job["spec"]["runPolicy"]["backoffLimit"] = 0;
  Scene scene = Running(job);
  scene.Set(kReplicas, 1);
  scene.Exit("mnist-worker-2", 1);  // before the operator looks
  scene.Step();
  scene.Exit("mnist-worker-1", 143);  // while it terminates
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
  EXPECT_EQ(scene.status()["restartCount"], 0);
  EXPECT_FALSE(scene.status()["replicaStatuses"]["Worker"].contains("failed"));
  EXPECT_THAT(scene.NewEvents(), IsEmpty());
}

TEST(Scale, ToZeroAndUpBesideAMaster) {
  Scene scene = Running(MakeJob(true, 2));
  scene.Set(kReplicas, 0);
  scene.Settle();
  EXPECT_THAT(scene.Children(), ElementsAre("Pod mnist-master-0", "Service mnist-master-0"));
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
  EXPECT_THAT(Lines(scene.Look()), IsEmpty()) << "no create/delete loop";
  scene.Set(kReplicas, 1);
  scene.Settle();
  EXPECT_TRUE(scene.pods.contains("mnist-worker-0"));
}

TEST(Scale, ACompletedReplicaThatIsScaledAwayAndBackRunsAgain) {
  Scene scene = Running(MakeJob(true, 2));
  scene.Exit("mnist-worker-1", 0);
  scene.Settle();
  scene.Set(kReplicas, 1);
  scene.Settle();
  EXPECT_FALSE(scene.status()["replicaStatuses"]["Worker"].contains("completedIndexes"));
  scene.Set(kReplicas, 2);
  scene.RestartOperator();
  scene.Settle();
  EXPECT_TRUE(scene.pods.contains("mnist-worker-1"));
}

TEST(Scale, NewPodsSeeTheNewWorld) {
  Scene scene = Running(MakeJob(true, 1));
  scene.Set(kReplicas, 2);
  scene.Settle();
  for (const Json& entry : scene.pods["mnist-worker-1"]["spec"]["containers"][0]["env"]) {
    if (entry["name"] == "WORLD_SIZE") {
      EXPECT_EQ(entry["value"], "3");
    }
  }
}

TEST(Scale, WithTheLastRunningWorkersGoneAWorkerOnlyJobSucceeds) {
  Scene scene = Running(MakeJob(false, 2));
  scene.Exit("mnist-worker-0", 0);
  scene.Settle();
  scene.Set(kReplicas, 1);
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Succeeded=T]");
}

TEST(Scale, ServicesOfElasticJobsFollow) {
  Json job = MakeJob(false, 3);
  job["spec"]["elasticPolicy"] = {{"minReplicas", 1}, {"maxReplicas", 4}};
  Scene scene = Running(job);
  EXPECT_EQ(scene.services.size(), 3u);
  scene.Set(kReplicas, 1);
  scene.Settle();
  EXPECT_THAT(scene.Children(), ElementsAre("Pod mnist-worker-0", "Service mnist-worker-0"));
  scene.Set(kReplicas, 4);
  scene.Settle();
  EXPECT_EQ(scene.services.size(), 4u);
}

Json MakeScaledJob() {
  Json job = MakeJob(false, 2);
  job["spec"]["elasticPolicy"] = FromYaml(R"({minReplicas: 1, maxReplicas: 4, metrics: [
      {type: Resource, resource: {name: cpu, target: {type: Utilization,
       averageUtilization: 80}}}]})");
  return job;
}

TEST(Autoscaler, IsMadeWithTheMetricsOnTheScaleSubresource) {
  Scene scene = Running(MakeScaledJob());
  ASSERT_TRUE(scene.autoscaler);
  const Json& body = *scene.autoscaler;
  EXPECT_EQ(body["apiVersion"], "autoscaling/v2");
  EXPECT_EQ(body["kind"], "HorizontalPodAutoscaler");
  EXPECT_EQ(body["metadata"]["name"], "mnist");
  EXPECT_EQ(body["metadata"]["ownerReferences"][0]["uid"], "job-uid");
  EXPECT_EQ(body["spec"]["scaleTargetRef"],
            FromYaml("{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: mnist}"));
  EXPECT_EQ(body["spec"]["minReplicas"], 1);
  EXPECT_EQ(body["spec"]["maxReplicas"], 4);
  EXPECT_EQ(body["spec"]["metrics"][0]["resource"]["name"], "cpu");
}

TEST(Autoscaler, IsUpdatedOnlyWhenTheSpecChanges) {
  Scene scene = Running(MakeScaledJob());
  (*scene.autoscaler)["spec"]["behavior"] = {{"note", "defaulted by the API server"}};
  EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  scene.Set("/spec/elasticPolicy/maxReplicas", 8);
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status", "patch HorizontalPodAutoscaler mnist"));
  EXPECT_EQ((*scene.autoscaler)["spec"]["maxReplicas"], 8);
}

TEST(Autoscaler, GoesWithTheMetricsAtSuspensionAndAtTheEnd) {
  for (int how = 0; how < 3; ++how) {
    Scene scene = Running(MakeScaledJob());
    if (how == 0) scene.job["spec"]["elasticPolicy"].erase("metrics");
    if (how == 1) scene.Set("/spec/runPolicy/suspend", true);
    if (how == 2) scene.Exit("mnist-worker-0", 0);
    scene.Settle();
    EXPECT_FALSE(scene.autoscaler) << how;
  }
}

}  // namespace
}  // namespace core::test
