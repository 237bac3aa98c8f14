// behaviour.md section 4: restart policy × exit code × sidecar, disruptions, delays.
#include "core/policy/restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What a failed worker leads to.
enum class Fate { kJobFails, kReplacedAndCounted, kReplaced };

std::string Name(Fate fate) {
  switch (fate) {
    case Fate::kJobFails:
      return "the job fails";
    case Fate::kReplacedAndCounted:
      return "replaced and counted";
    case Fate::kReplaced:
      return "replaced, not counted";
  }
  return "";
}

Scene Running(const std::string& policy) {
  Scene scene(MakeJob(true, 1, policy));
  scene.Step();
  scene.StartAll();
  scene.Step();
  scene.Advance(seconds{30});
  return scene;
}

std::string FateOf(Scene& scene) {
  scene.Step();
  if (scene.Condition("Failed") != nullptr) {
    EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Failed=T]");
    return Name(Fate::kJobFails);
  }
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  EXPECT_THAT(scene.Children(),
              ElementsAre("Pod mnist-master-0", "Pod mnist-worker-0 (terminating)",
                          "Service mnist-master-0"));
  scene.RemoveTerminating();
  EXPECT_THAT(Lines(scene.Step()), ::testing::Contains("create Pod mnist-worker-0"));
  return Name(scene.status()["restartCount"] == 1 ? Fate::kReplacedAndCounted : Fate::kReplaced);
}

struct Policy {
  const char* name;
  Fate below_128;
  Fate from_128;
  Fate without_code;
};

constexpr Policy kPolicies[] = {
    {"Never", Fate::kJobFails, Fate::kJobFails, Fate::kJobFails},
    {"OnFailure", Fate::kReplacedAndCounted, Fate::kReplacedAndCounted, Fate::kReplacedAndCounted},
    {"Always", Fate::kReplacedAndCounted, Fate::kReplacedAndCounted, Fate::kReplacedAndCounted},
    {"ExitCode", Fate::kJobFails, Fate::kReplacedAndCounted, Fate::kReplacedAndCounted},
};
constexpr int kNone = -1;
constexpr int kCodes[] = {1, 2, 126, 127, 128, 130, 134, 137, 139, 143, 255, kNone};

Fate Expected(const Policy& policy, int code) {
  return code == kNone ? policy.without_code : code < 128 ? policy.below_128 : policy.from_128;
}

Json Ended(const std::string& name, int code) {
  return {{"name", name},
          {"restartCount", 0},
          {"state",
           {{"terminated",
             {{"exitCode", code}, {"reason", "Error"}, {"finishedAt", FormatTime(kStart)}}}}}};
}

void Fail(Scene& scene, int code) {
  if (code == kNone) {
    scene.Exit("mnist-worker-0", 1);
    scene.pods["mnist-worker-0"]["status"].erase("containerStatuses");
  } else {
    scene.Exit("mnist-worker-0", code);
  }
}

class RestartPolicyOf : public ::testing::TestWithParam<Policy> {};

TEST_P(RestartPolicyOf, ForEachExitCode) {
  for (int code : kCodes) {
    SCOPED_TRACE(code);
    Scene scene = Running(GetParam().name);
    Fail(scene, code);
    EXPECT_EQ(FateOf(scene), Name(Expected(GetParam(), code)));
  }
}

// The pod's phase is Failed only once all containers have ended, so the order of their ends shows
// in the order of statuses at most.
TEST_P(RestartPolicyOf, ASidecarsEndDoesNotHideTheTrainers) {
  Scene scene = Running(GetParam().name);
  for (int code : kCodes) {
    if (code == kNone) continue;
    for (int sidecar : {0, 1, 137}) {
      for (bool first : {true, false}) {
        SCOPED_TRACE(std::to_string(code) + " sidecar " + std::to_string(sidecar));
        scene.Exit("mnist-worker-0", code);
        Json statuses = Json::array({Ended("pytorch", code), Ended("sidecar", sidecar)});
        if (first) std::swap(statuses[0], statuses[1]);
        scene.pods["mnist-worker-0"]["status"]["containerStatuses"] = statuses;
        const Snapshot snapshot = scene.Observe();
        const Pod& pod = *snapshot.pods.back();
        const auto policy = snapshot.job->spec.replicas.at(ReplicaType::kWorker).restart_policy;
        const bool fails = Expected(GetParam(), code) == Fate::kJobFails;
        EXPECT_EQ(Judge(pod, policy, "pytorch"), fails ? Verdict::kFatal : Verdict::kRetry);
        EXPECT_EQ(DescribeFailure(pod, "pytorch").exit_code, code);
      }
    }
  }
}

TEST_P(RestartPolicyOf, ASidecarThatFailsAloneFailsThePod) {
  for (int sidecar : {1, 137}) {
    Scene scene = Running(GetParam().name);
    scene.Exit("mnist-worker-0", 1);
    scene.pods["mnist-worker-0"]["status"]["containerStatuses"] =
        Json::array({Ended("sidecar", sidecar), Ended("pytorch", 0)});
    EXPECT_EQ(FateOf(scene), Name(Expected(GetParam(), sidecar)));
  }
}

TEST_P(RestartPolicyOf, ExitCodeZeroIsSuccess) {
  Scene scene = Running(GetParam().name);
  scene.Exit("mnist-worker-0", 0);
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
  scene.Remove("mnist-worker-0");  // e.g. by the pod garbage collector
  scene.Settle();
  EXPECT_THAT(scene.Children(), ElementsAre("Pod mnist-master-0", "Service mnist-master-0"))
      << "never run again";
  EXPECT_EQ(scene.status()["replicaStatuses"]["Worker"]["completedIndexes"], "0");
}

TEST_P(RestartPolicyOf, ASuccessThatNoPassSawButTheWatchDid) {
  Scene scene = Running(GetParam().name);
  scene.Exit("mnist-worker-0", 0);
  scene.Remove("mnist-worker-0");
  scene.Settle();
  EXPECT_FALSE(scene.pods.contains("mnist-worker-0"));
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
}

TEST_P(RestartPolicyOf, DisruptionsAreReplacedAndNotCounted) {
  for (const char* reason :
       {"Evicted", "NodeLost", "Shutdown", "NodeShutdown", "Terminated", "Preempting", "OutOfcpu",
        "OutOfmemory", "OutOfpods", "NodeAffinity", "UnexpectedAdmissionError"}) {
    SCOPED_TRACE(reason);
    Scene scene = Running(GetParam().name);
    scene.Refuse("mnist-worker-0", reason);
    EXPECT_EQ(FateOf(scene), Name(Fate::kReplaced));
    EXPECT_EQ(scene.status()["lastFailure"]["reason"], reason);
  }
}

TEST_P(RestartPolicyOf, TheConditionDisruptionTargetExcusesAnyExitCode) {
  for (int code : {1, 137}) {
    Scene scene = Running(GetParam().name);
    scene.Exit("mnist-worker-0", code);
    scene.pods["mnist-worker-0"]["status"]["conditions"].push_back(
        FromYaml("{type: DisruptionTarget, status: \"True\", reason: PreemptionByScheduler}"));
    EXPECT_EQ(FateOf(scene), Name(Fate::kReplaced));
  }
}

TEST_P(RestartPolicyOf, OtherReasonsOfThePodAreNoExcuse) {
  Scene scene = Running(GetParam().name);
  scene.Exit("mnist-worker-0", 1);
  scene.pods["mnist-worker-0"]["status"]["reason"] = "DeadlineExceeded";
  scene.pods["mnist-worker-0"]["status"]["conditions"].push_back(
      FromYaml("{type: DisruptionTarget, status: \"False\", reason: EvictionByEvictionAPI}"));
  EXPECT_EQ(FateOf(scene), Name(GetParam().below_128));
}

TEST_P(RestartPolicyOf, DeletionByHandIsReplacedAndNotCounted) {
  Scene scene = Running(GetParam().name);
  scene.DeleteByHand("mnist-worker-0");
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  EXPECT_THAT((*scene.Condition("Restarting"))["message"].get<std::string>(),
              HasSubstr("Pod mnist-worker-0 is being deleted."));
  scene.Exit("mnist-worker-0", 143);  // it is still there, and obeys
  scene.Step();
  EXPECT_EQ(scene.Condition("Failed"), nullptr);
  scene.Remove("mnist-worker-0");
  scene.Step();
  EXPECT_TRUE(scene.pods.contains("mnist-worker-0"));
  EXPECT_EQ(scene.status()["restartCount"], 0);
}

TEST_P(RestartPolicyOf, AVanishedPodIsReplacedAndNotCounted) {
  Scene scene = Running(GetParam().name);
  scene.Remove("mnist-worker-0");
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  EXPECT_TRUE(scene.pods.contains("mnist-worker-0"));
  EXPECT_EQ(scene.status()["restartCount"], 0);
}

INSTANTIATE_TEST_SUITE_P(Table, RestartPolicyOf, ::testing::ValuesIn(kPolicies),
                         [](const auto& info) { return info.param.name; });

TEST(Restart, AFailedInitContainerLeavesNoExitCodeOfTheTrainer) {
  Scene scene = Running("ExitCode");
  Json& status = scene.pods["mnist-worker-0"]["status"];
  status["phase"] = "Failed";
  status["initContainerStatuses"] = Json::array({Ended("fetch", 3)});
  status["containerStatuses"] =
      FromYaml("[{name: pytorch, restartCount: 0, state: {waiting: {reason: PodInitializing}}}]");
  EXPECT_EQ(FateOf(scene), Name(Fate::kReplacedAndCounted));
  EXPECT_EQ(scene.status()["lastFailure"]["exitCode"], 3);
}

TEST(Restart, DelaysAreThoseOfBatchJobs) {
  const int expected[] = {0, 0, 10, 20, 40, 80, 160, 320, 600, 600};
  for (int k = 0; k < 10; ++k) EXPECT_EQ(ReplacementDelay(k), seconds{expected[k]}) << k;
  EXPECT_EQ(ReplacementDelay(1000000), seconds{600});
}

TEST(Restart, APodThatRanForTenMinutesStartsAnew) {
  Pod pod;
  pod.replacement = 4;
  EXPECT_EQ(NextReplacement(pod, kStart), 5) << "it never ran";
  pod.started = kStart;
  EXPECT_EQ(NextReplacement(pod, kStart + seconds{599}), 5);
  EXPECT_EQ(NextReplacement(pod, kStart + seconds{600}), 1);
}

TEST(Restart, TheEndOfAPod) {
  Pod pod;
  pod.created = kStart;
  EXPECT_EQ(EndOf(pod), kStart) << "no trace of anything later";
  pod.changed = kStart + seconds{5};
  EXPECT_EQ(EndOf(pod), kStart + seconds{5});
  Container container;
  container.terminated = Termination{1, "", "", kStart + seconds{3}};
  pod.containers = {container, container};
  pod.containers[1].terminated->finished = kStart + seconds{4};
  EXPECT_EQ(EndOf(pod), kStart + seconds{4}) << "the last container's";
}

TEST(Restart, SentencesForUsers) {
  LastFailure failure;
  failure.pod = "p";
  EXPECT_EQ(Sentence(failure), "Pod p failed.");
  failure.reason = "Evicted";
  EXPECT_EQ(Sentence(failure), "Pod p failed (Evicted).");
  failure.exit_code = 137;
  failure.reason = "OOMKilled";
  EXPECT_EQ(Sentence(failure), "Pod p exited with code 137 (OOMKilled).");
  failure.reason = "";
  failure.message = "no space.\n";
  EXPECT_EQ(Sentence(failure), "Pod p exited with code 137: no space.");
}

}  // namespace
}  // namespace core::test
