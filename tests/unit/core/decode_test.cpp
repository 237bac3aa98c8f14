// The decoders: what is of a wrong type counts as not set; nothing throws.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/encode.h"
#include "core/names.h"
#include "kit.h"

namespace core::test {
namespace {

using ::testing::IsEmpty;

Job Decoded(Json job) { return DecodeJob(Scene(std::move(job)).job.dump()).value(); }

TEST(DecodeJob, Defaults) {
  const Job job = Decoded(FromYaml(R"({metadata: {name: mnist}, spec: {pytorchReplicaSpecs:
      {Master: {template: {spec: {containers: [{name: pytorch, image: a}]}}}}}})"));
  EXPECT_THAT(job.errors, IsEmpty());
  const ReplicaSpec& master = job.spec.replicas.at(ReplicaType::kMaster);
  EXPECT_EQ(master.replicas, 1);
  EXPECT_EQ(master.restart_policy, RestartPolicy::kOnFailure);
  EXPECT_EQ(job.spec.nproc_per_node, "auto");
  EXPECT_EQ(job.spec.run_policy.clean_pod_policy, CleanPodPolicy::kNotSet);
  EXPECT_EQ(job.spec.run_policy.restart_scope, RestartScope::kReplica);
  EXPECT_EQ(job.spec.run_policy.backoff_limit, std::nullopt);
  EXPECT_FALSE(job.spec.run_policy.suspend);
  EXPECT_EQ(job.spec.TotalReplicas(), 1);
  EXPECT_FALSE(job.spec.elastic);
}

TEST(DecodeJob, ElasticDefaultsComeFromTheWorkers) {
  struct {
    const char* policy;
    int min, max;
    const char* nproc;
  } cases[] = {{"{}", 3, 3, "auto"},
               {"{minReplicas: 1}", 1, 3, "auto"},
               {"{maxReplicas: 7}", 3, 7, "auto"},
               {"{minReplicas: 2, maxReplicas: 4, nProcPerNode: 2}", 2, 4, ""}};
  for (const auto& c : cases) {
    Json json = MakeJob(false, 3);
    json["spec"]["elasticPolicy"] = FromYaml(c.policy);
    const Job job = Decoded(json);
    EXPECT_EQ(job.spec.elastic->min_replicas, c.min) << c.policy;
    EXPECT_EQ(job.spec.elastic->max_replicas, c.max) << c.policy;
    EXPECT_EQ(job.spec.nproc_per_node, c.nproc) << c.policy;
  }
}

TEST(DecodeJob, AFinishedJobKeepsNoTemplatesAndIsNotValidated) {
  Json json = MakeJob(true, 1);
  json["spec"]["runPolicy"]["backoffLimit"] = -1;
  EXPECT_FALSE(Decoded(json).errors.empty());
  json["status"] = FromYaml("{conditions: [{type: Succeeded, status: \"True\"}]}");
  const Job job = Decoded(json);
  EXPECT_THAT(job.errors, IsEmpty());
  EXPECT_EQ(job.spec.replicas.at(ReplicaType::kMaster).template_json, "");
}

TEST(DecodeJob, StatusSurvivesARoundTrip) {
  const Json status = FromYaml(R"(
conditions:
- {type: Created, status: "True", reason: R, message: m, lastUpdateTime: "2026-03-01T12:00:00Z",
   lastTransitionTime: "2026-03-01T12:00:00Z"}
- {type: Running, status: "False", reason: R, message: m, lastUpdateTime: "2026-03-01T12:00:01Z",
   lastTransitionTime: "2026-03-01T12:00:01Z"}
replicaStatuses:
  Master: {active: 1, ready: 1, selector: s}
  Worker: {active: 2, succeeded: 4, failed: 1, selector: s, completedIndexes: "0-2,5"}
startTime: "2026-03-01T12:00:00Z"
completionTime: "2026-03-01T12:00:05Z"
observedGeneration: 7
summary: 2/3
restartCount: 5
attempt: 2
accountedPods: [{uid: a, restarts: 3}, {uid: b, failed: true}]
waiting: {pod: p, reason: r, message: m}
lastFailure: {pod: p, replicaType: Worker, index: 3, exitCode: 137, reason: OOMKilled, message: m,
              time: "2026-03-01T12:00:02Z"}
)");
  Json json = MakeJob(true, 1);
  json["status"] = status;
  EXPECT_EQ(Json::diff(status, EncodeStatus(Decoded(json).status, true)), Json::array());
}

TEST(DecodeJob, AnyShapeIsRead) {
  for (const char* junk :
       {"7", "text", "[]", "[7]", "{}", "null", "true", "-1.5", "{a: {b: [c]}}"}) {
    const Json value = FromYaml(junk);
    for (const char* pointer :
         {"/spec", "/spec/pytorchReplicaSpecs", "/spec/pytorchReplicaSpecs/Master",
          "/spec/pytorchReplicaSpecs/Master/replicas", "/spec/runPolicy", "/spec/elasticPolicy",
          "/spec/runPolicy/schedulingPolicy", "/spec/nprocPerNode", "/status", "/status/conditions",
          "/status/replicaStatuses", "/status/accountedPods", "/status/waiting",
          "/status/lastFailure", "/status/startTime", "/metadata/annotations",
          "/metadata/generation"}) {
      SCOPED_TRACE(std::string(junk) + " at " + pointer);
      Json json = Scene(MakeJob(true, 1)).job;
      json["status"] = Json::object();
      json["metadata"]["annotations"] = Json::object();
      json[Json::json_pointer(pointer)] = value;
      ASSERT_TRUE(DecodeJob(json.dump()).ok());
      Scene scene(json);
      Decide(scene.Observe(), kStart, {});
    }
  }
  for (const char* text : {"", "7", "[]", "null", "{", "{}", "{\"metadata\":{\"name\":7}}"}) {
    EXPECT_FALSE(DecodeJob(text).ok()) << text;
    EXPECT_FALSE(DecodePod(text).ok()) << text;
    EXPECT_FALSE(DecodeService(text).ok()) << text;
    EXPECT_FALSE(DecodePodGroup(text).ok()) << text;
    EXPECT_FALSE(DecodeAutoscaler(text).ok()) << text;
  }
}

TEST(DecodePod, EverythingThatDecisionsNeed) {
  const Pod pod = DecodePod(FromYaml(R"(
metadata:
  {name: mnist-worker-12, namespace: demo, uid: u, resourceVersion: "5",
   creationTimestamp: "2026-03-01T12:00:00Z", deletionTimestamp: "2026-03-01T12:01:00Z",
   deletionGracePeriodSeconds: 0,
   labels: {training.kubeflow.org/operator-name: pytorchjob-controller,
            training.kubeflow.org/job-name: mnist, training.kubeflow.org/replica-type: worker,
            training.kubeflow.org/replica-index: "12", training.kubeflow.org/attempt: "3"},
   annotations: {pytorch-operator.kubeflow.org/replacement: "4",
                 pytorch-operator.kubeflow.org/incarnation: "2026-03-01T11:00:00Z"},
   ownerReferences: [{kind: Other, name: x, uid: y},
                     {kind: PyTorchJob, name: mnist, uid: j, controller: true}]}
spec: {nodeName: node-1}
status:
  phase: Failed
  reason: Evicted
  message: low on memory
  startTime: "2026-03-01T12:00:10Z"
  conditions:
  - {type: Ready, status: "True", lastTransitionTime: "2026-03-01T12:00:20Z"}
  - {type: DisruptionTarget, status: "True", reason: TerminationByKubelet,
     lastTransitionTime: "2026-03-01T12:00:30Z"}
  initContainerStatuses: [{name: init, restartCount: 1, state: {}}]
  containerStatuses:
  - {name: pytorch, restartCount: 2,
     state: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-03-01T12:00:29Z"}},
     lastState: {terminated: {exitCode: 1}}}
)")
                                .dump())
                      .value();
  EXPECT_EQ(pod.type, ReplicaType::kWorker);
  EXPECT_EQ(pod.index, 12);
  EXPECT_EQ(pod.owner_uid, "j");
  EXPECT_TRUE(pod.labels_intact);
  EXPECT_EQ(pod.attempt, 3);
  EXPECT_EQ(pod.replacement, 4);
  EXPECT_EQ(pod.incarnation, "2026-03-01T11:00:00Z");
  EXPECT_EQ(pod.phase, PodPhase::kFailed);
  EXPECT_EQ(pod.reason, "Evicted");
  EXPECT_EQ(pod.disruption, "TerminationByKubelet");
  EXPECT_TRUE(pod.ready);
  EXPECT_TRUE(pod.forced);
  EXPECT_EQ(pod.node, "node-1");
  EXPECT_EQ(pod.started, kStart + seconds{10});
  EXPECT_EQ(pod.changed, kStart + seconds{30});
  EXPECT_EQ(pod.deletion, kStart + seconds{60});
  ASSERT_EQ(pod.containers.size(), 2u);
  EXPECT_TRUE(pod.containers[0].init);
  EXPECT_EQ(pod.containers[1].terminated->exit_code, 137);
  EXPECT_EQ(pod.containers[1].last_terminated->exit_code, 1);
}

TEST(DecodePod, APodWithoutAControllerBelongsToNobody) {
  const Pod pod = DecodePod(R"({"metadata":{"name":"mnist-worker-0"}})").value();
  EXPECT_EQ(pod.owner_uid, "");
  EXPECT_EQ(pod.index, -1);
}

TEST(Names, OfPods) {
  EXPECT_EQ(ParsePodName("mnist", "mnist-worker-12")->index, 12);
  EXPECT_EQ(ParsePodName("mnist", "mnist-master-0")->type, ReplicaType::kMaster);
  EXPECT_EQ(ParsePodName("a-worker-1", "a-worker-1-worker-2")->index, 2);
  for (const char* other : {"mnist", "mnist-worker-", "mnist-worker-01", "mnist-worker--1",
                            "mnist-worker-1x", "mnist-worker-+1", "mnist-ps-0", "other-worker-0",
                            "mnist2-worker-0", "mnist-worker-99999999999"}) {
    EXPECT_FALSE(ParsePodName("mnist", other)) << other;
  }
  EXPECT_FALSE(ParsePodName("", "-worker-0"));
}

TEST(Names, TruncationKeepsCharactersWhole) {
  EXPECT_EQ(Truncated("short", 5), "short");
  EXPECT_EQ(Truncated("longer text", 9), "longer…");
  EXPECT_EQ(Truncated("ääää", 7), "ää…");
  EXPECT_EQ(Truncated("ääää", 6), "ä…");
}

TEST(Encode, IndexesAsBatchJobsWriteThem) {
  struct {
    std::set<int> indexes;
    const char* text;
  } cases[] = {{{}, ""},
               {{0}, "0"},
               {{0, 1}, "0,1"},
               {{0, 1, 2, 4}, "0-2,4"},
               {{1, 3, 4, 5, 9, 10}, "1,3-5,9,10"}};
  for (const auto& c : cases) {
    EXPECT_EQ(FormatIndexes(c.indexes), c.text);
    EXPECT_EQ(ParseIndexes(c.text, 100), c.indexes) << c.text;
  }
  EXPECT_EQ(ParseIndexes("x,3,-1,5-4,7-,99,2-200", 100), (std::set<int>{3, 99}));
  EXPECT_EQ(ParseIndexes("0-99999999999", 100), std::set<int>{});
}

TEST(Encode, AMergePatchTurnsOneIntoTheOther) {
  const char* values[] = {"{}",          "{a: 1}",   "{a: {b: 1, c: 2}}", "{a: {b: 1}}",
                          "{a: [1, 2]}", "{a: [1]}", "{b: {}, a: text}"};
  for (const char* from : values) {
    for (const char* to : values) {
      Json target = FromYaml(from);
      const Json patch = MergePatch(target, FromYaml(to));
      EXPECT_EQ(patch.empty(), std::string(from) == to);
      target.merge_patch(patch);
      EXPECT_EQ(target, FromYaml(to)) << from << " -> " << to << " by " << patch;
    }
  }
}

TEST(Time, ReadsRfc3339) {
  EXPECT_EQ(FormatTime(kStart), "2026-03-01T12:00:00Z");
  EXPECT_EQ(FormatTime(kStart + std::chrono::milliseconds{999}), "2026-03-01T12:00:00Z");
  EXPECT_EQ(ParseTime("2026-03-01T13:30:00+01:30"), kStart);
  EXPECT_EQ(ParseTime("2026-03-01T10:00:00-02:00"), kStart);
  EXPECT_EQ(ParseTime("2026-03-01T12:00:00.25Z"), kStart + std::chrono::milliseconds{250});
  EXPECT_EQ(ParseTime("2026-03-01T12:00:00.123456789Z"), kStart + std::chrono::milliseconds{123});
  EXPECT_EQ(ParseTime("2024-02-29T00:00:00Z").has_value(), true);
  for (const char* text :
       {"", "2026-03-01", "2026-03-01T12:00:00", "2026-02-30T12:00:00Z", "2026-13-01T12:00:00Z",
        "2026-03-01T24:00:00Z", "2026-03-01 12:00:00Z", "2026-03-01T12:00:00Zx",
        "2026-03-01T12:00:00+1:00", "2026-03-01T12:0x:00Z"}) {
    EXPECT_FALSE(ParseTime(text)) << text;
  }
}

}  // namespace
}  // namespace core::test
