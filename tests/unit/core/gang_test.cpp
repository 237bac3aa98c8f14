// behaviour.md section 5, "Gang scheduling".
#include "core/policy/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

Json MakeGang(const std::string& scheduling = "{}") {
  Json job = MakeJob(true, 2);
  for (auto& [type, replica] : job["spec"]["pytorchReplicaSpecs"].items()) {
    replica["template"]["spec"]["containers"][0]["resources"] =
        FromYaml("{requests: {cpu: 500m, memory: 1Gi}, limits: {cpu: 1, nvidia.com/gpu: 2}}");
  }
  job["spec"]["runPolicy"]["schedulingPolicy"] = FromYaml(scheduling);
  return job;
}

Scene With(const char* scheduler, Json job) {
  Scene scene(std::move(job));
  scene.options.gang_scheduler = scheduler;
  return scene;
}

TEST(Gang, WithoutASchedulerThereIsNone) {
  Scene scene = With("", MakeGang("{minAvailable: 3}"));
  scene.Step();
  EXPECT_FALSE(scene.pod_group);
  EXPECT_FALSE(scene.pods["mnist-master-0"]["spec"].contains("schedulerName"));
}

TEST(Gang, VolcanosPodsWaitUntilTheGroupIsAdmitted) {
  Scene scene = With("volcano", MakeGang());
  EXPECT_THAT(Lines(scene.Step()),
              ElementsAre("status", "create Service mnist-master-0", "create PodGroup mnist"));
  EXPECT_EQ((*scene.pod_group)["apiVersion"], "scheduling.volcano.sh/v1beta1");
  EXPECT_EQ((*scene.pod_group)["spec"], FromYaml(R"({minMember: 3, queue: default, minResources:
                {cpu: 1500m, memory: "3221225472", nvidia.com/gpu: "6"}})"));
  EXPECT_EQ((*scene.pod_group)["metadata"]["ownerReferences"][0]["uid"], "job-uid");
  for (const char* phase : {"", "Pending"}) {
    (*scene.pod_group)["status"]["phase"] = phase;
    EXPECT_THAT(Lines(scene.Step()), IsEmpty()) << phase;
  }
  (*scene.pod_group)["status"]["phase"] = "Inqueue";
  scene.Settle();
  EXPECT_EQ(scene.pods.size(), 3u);
  const Json& pod = scene.pods["mnist-worker-0"];
  EXPECT_EQ(pod["spec"]["schedulerName"], "volcano");
  EXPECT_EQ(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "mnist");
  EXPECT_EQ(pod["metadata"]["annotations"]["volcano.sh/task-spec"], "worker");
}

TEST(Gang, SchedulerPluginsPodsNeedNotWait) {
  Scene scene = With("scheduler-plugins", MakeGang("{scheduleTimeoutSeconds: 30}"));
  scene.Step();
  EXPECT_EQ((*scene.pod_group)["apiVersion"], "scheduling.x-k8s.io/v1alpha1");
  EXPECT_EQ((*scene.pod_group)["spec"]["scheduleTimeoutSeconds"], 30);
  EXPECT_FALSE((*scene.pod_group)["spec"].contains("queue"));
  EXPECT_EQ(scene.pods.size(), 3u);
  EXPECT_EQ(scene.pods["mnist-master-0"]["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"],
            "mnist");
}

TEST(Gang, FieldsOfThePolicy) {
  Scene scene = With("volcano", MakeGang(R"({minAvailable: 2, queue: gpu, priorityClass: high,
      minResources: {cpu: 4}})"));
  scene.Step();
  EXPECT_EQ(
      (*scene.pod_group)["spec"],
      FromYaml("{minMember: 2, queue: gpu, priorityClassName: high, minResources: {cpu: 4}}"));
}

TEST(Gang, ResourcesAreThoseOfTheFirstMembersByRank) {
  Scene scene = With("volcano", MakeGang("{minAvailable: 1}"));
  scene.Step();
  EXPECT_EQ((*scene.pod_group)["spec"]["minResources"],
            FromYaml("{cpu: 500m, memory: \"1073741824\", nvidia.com/gpu: \"2\"}"));
}

TEST(Gang, NothingIsWrittenWhileNothingChanges) {
  Scene scene = With("volcano", MakeGang());
  scene.Step();
  Json& spec = (*scene.pod_group)["spec"];
  spec["minResources"]["memory"] = "3Gi";  // the same, said otherwise
  spec["minTaskMember"] = Json::object();  // defaulted by volcano
  EXPECT_THAT(Lines(scene.Look()), IsEmpty());
  scene.Set("/spec/pytorchReplicaSpecs/Worker/replicas", 1);
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status", "patch PodGroup mnist"));
  EXPECT_EQ(spec["minMember"], 2);
}

TEST(Gang, TheGroupGoesAtTheEndAndAtSuspension) {
  for (bool suspend : {false, true}) {
    Scene scene = With("scheduler-plugins", MakeGang());
    scene.Step();
    scene.StartAll();
    scene.Settle();
    if (suspend) {
      scene.Set("/spec/runPolicy/suspend", true);
    } else {
      scene.Exit("mnist-master-0", 0);
    }
    EXPECT_THAT(Lines(scene.Step()), Contains("delete PodGroup mnist"));
    scene.Settle();
    EXPECT_FALSE(scene.pod_group);
    if (!suspend) continue;
    scene.Set("/spec/runPolicy/suspend", false);
    scene.Settle();
    EXPECT_TRUE(scene.pod_group);
  }
}

TEST(Gang, AnotherSchedulerOfTheTemplateStaysWithOneWarning) {
  Json job = MakeGang();
  job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "mine";
  Scene scene = With("scheduler-plugins", job);
  scene.Step();
  EXPECT_EQ(scene.pods["mnist-worker-0"]["spec"]["schedulerName"], "mine");
  EXPECT_THAT(
      scene.NewEvents(),
      ElementsAre("Warning SetPodTemplateSchedulerName: Another scheduler is specified when "
                  "gang-scheduling is enabled and it will not be overwritten"));
}

TEST(Gang, ARefusedGroupIsInTheStatus) {
  Scene scene = With("volcano", MakeGang());
  scene.Apply(scene.Look().actions[0]);
  scene.create_errors.push_back({Kind::kPodGroup, "mnist", base::ErrorCode::kNotFound,
                                 "the server could not find the requested resource", scene.now, 1});
  scene.Step();
  EXPECT_EQ((*scene.Condition("ReplicaFailure"))["reason"], "FailedCreatePodGroup");
  EXPECT_THAT(scene.Children(), Not(Contains("Pod mnist-master-0")));
  scene.Advance(seconds{1});
  scene.Step();
  EXPECT_TRUE(scene.pod_group);
}

}  // namespace
}  // namespace core::test
