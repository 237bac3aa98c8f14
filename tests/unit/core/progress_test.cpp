// behaviour.md section 3: the transition table, its messages and its times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Scene Running(Json job) {
  Scene scene(std::move(job));
  scene.Step();
  scene.Advance(seconds{5});
  scene.StartAll();
  scene.Step();
  return scene;
}

void ExpectCondition(const Scene& scene, const std::string& type, const std::string& status,
                     const std::string& reason, const std::string& message,
                     const std::string& time) {
  const Json* condition = scene.Condition(type);
  ASSERT_NE(condition, nullptr) << type << " is not in " << scene.conditions();
  EXPECT_EQ((*condition)["status"], status) << type;
  EXPECT_EQ((*condition)["reason"], reason) << type;
  EXPECT_EQ((*condition)["message"], message) << type;
  EXPECT_EQ((*condition)["lastTransitionTime"], time) << type;
  EXPECT_EQ((*condition)["lastUpdateTime"], time) << type;
}

TEST(Progress, CreatedIsWrittenBeforeTheFirstChild) {
  Scene scene(MakeJob(true, 2));
  const Plan plan = scene.Step();
  EXPECT_EQ(Lines(plan)[0], "status");
  EXPECT_EQ(scene.conditions(), "[Created=T]");
  ExpectCondition(scene, "Created", "True", "PyTorchJobCreated", "PyTorchJob mnist is created.",
                  "2026-03-01T12:00:00Z");
  EXPECT_EQ(scene.status()["startTime"], "2026-03-01T12:00:00Z");
  EXPECT_EQ(scene.status()["observedGeneration"], 1);
  EXPECT_THAT(scene.transitions, ElementsAre(Transition::kCreated));
}

struct RunCase {
  const char* name;
  bool master;
  std::vector<std::string> started;
  const char* conditions;
};

class RunningFollowsPodPhases : public ::testing::TestWithParam<RunCase> {};

TEST_P(RunningFollowsPodPhases, Alone) {
  Scene scene(MakeJob(GetParam().master, 2));
  scene.Step();
  for (const std::string& pod : GetParam().started) {
    scene.Start(pod);
    scene.pods[pod]["status"]["conditions"][0]["status"] = "False";  // Ready does not matter
  }
  scene.Settle();
  EXPECT_EQ(scene.conditions(), GetParam().conditions);
}

INSTANTIATE_TEST_SUITE_P(
    Table, RunningFollowsPodPhases,
    ::testing::Values(
        RunCase{"NothingRuns", true, {}, "[Created=T]"},
        RunCase{"TheMasterRuns", true, {"mnist-master-0"}, "[Created=T, Running=T]"},
        RunCase{"OnlyWorkersRun", true, {"mnist-worker-0", "mnist-worker-1"}, "[Created=T]"},
        RunCase{"AnyWorkerWithoutAMaster", false, {"mnist-worker-1"}, "[Created=T, Running=T]"},
        RunCase{"NoWorkerWithoutAMaster", false, {}, "[Created=T]"}),
    [](const auto& info) { return info.param.name; });

TEST(Progress, RunningOfAMasterJob) {
  Scene scene = Running(MakeJob(true, 1));
  ExpectCondition(scene, "Running", "True", "PyTorchJobRunning", "PyTorchJob mnist is running.",
                  "2026-03-01T12:00:05Z");
}

TEST(Progress, RunningOfAWorkerOnlyJobNamesItsNamespace) {
  Scene scene = Running(MakeJob(false, 2));
  ExpectCondition(scene, "Running", "True", "PyTorchJobRunning",
                  "PyTorchJob demo/mnist is running.", "2026-03-01T12:00:05Z");
}

TEST(Progress, SuccessOfTheMaster) {
  Scene scene = Running(MakeJob(true, 2));
  scene.NewEvents();
  scene.Advance(seconds{60});
  scene.Exit("mnist-master-0", 0);
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Succeeded=T]");
  ExpectCondition(scene, "Succeeded", "True", "PyTorchJobSucceeded",
                  "PyTorchJob mnist is successfully completed.", "2026-03-01T12:01:05Z");
  ExpectCondition(scene, "Running", "False", "PyTorchJobRunning", "PyTorchJob mnist is running.",
                  "2026-03-01T12:01:05Z");
  EXPECT_EQ(scene.status()["completionTime"], "2026-03-01T12:01:05Z");
  EXPECT_EQ(scene.status()["replicaStatuses"]["Master"]["succeeded"], 1);
  EXPECT_EQ(scene.status()["replicaStatuses"]["Worker"]["active"], 2) << "they still run";
  EXPECT_EQ(scene.status()["summary"], "1/3");
  EXPECT_THAT(
      scene.NewEvents(),
      ElementsAre("Normal PyTorchJobSucceeded: PyTorchJob mnist is successfully completed."));
  EXPECT_THAT(scene.transitions, ElementsAre(Transition::kCreated, Transition::kSuccessful));
}

TEST(Progress, SuccessOfEveryWorker) {
  Scene scene = Running(MakeJob(false, 2));
  scene.Exit("mnist-worker-0", 0);
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
  EXPECT_EQ(scene.status()["replicaStatuses"]["Worker"]["completedIndexes"], "0");
  scene.Advance(seconds{1});
  scene.Exit("mnist-worker-1", 0);
  scene.Step();
  ExpectCondition(scene, "Succeeded", "True", "PyTorchJobSucceeded",
                  "PyTorchJob demo/mnist successfully completed.", "2026-03-01T12:00:06Z");
  EXPECT_EQ(scene.status()["summary"], "2/2");
}

struct OutcomeCase {
  const char* name;
  bool master;
  bool elastic;
  std::map<std::string, int> exits;
  const char* conditions;
};

class Outcome : public ::testing::TestWithParam<OutcomeCase> {};

TEST_P(Outcome, OfWhatIsSeenInOnePass) {
  Json job = MakeJob(GetParam().master, 2, "Never");
  if (GetParam().elastic) job["spec"]["elasticPolicy"] = {{"minReplicas", 1}};
  Scene scene = Running(job);
  for (const auto& [pod, code] : GetParam().exits) scene.Exit(pod, code);
  scene.Step();
  EXPECT_EQ(scene.conditions(), GetParam().conditions);
}

constexpr char kWon[] = "[Created=T, Running=F, Succeeded=T]";
constexpr char kLost[] = "[Created=T, Running=F, Failed=T]";
constexpr char kGoesOn[] = "[Created=T, Running=T]";

INSTANTIATE_TEST_SUITE_P(
    Table, Outcome,
    ::testing::Values(
        OutcomeCase{"MasterSucceeds", true, false, {{"mnist-master-0", 0}}, kWon},
        OutcomeCase{"MasterFails", true, false, {{"mnist-master-0", 1}}, kLost},
        OutcomeCase{"MasterDecidesSuccess",
                    true,
                    false,
                    {{"mnist-master-0", 0}, {"mnist-worker-0", 1}},
                    kWon},
        OutcomeCase{"MasterDecidesFailure",
                    true,
                    false,
                    {{"mnist-master-0", 1}, {"mnist-worker-0", 0}, {"mnist-worker-1", 0}},
                    kLost},
        OutcomeCase{"AWorkerFailsTheJob", true, false, {{"mnist-worker-1", 1}}, kLost},
        OutcomeCase{"WorkersDoNotEndAMasterJob",
                    true,
                    false,
                    {{"mnist-worker-0", 0}, {"mnist-worker-1", 0}},
                    kGoesOn},
        OutcomeCase{"OneOfTwoWorkers", false, false, {{"mnist-worker-0", 0}}, kGoesOn},
        OutcomeCase{
            "OneWorkerFails", false, false, {{"mnist-worker-0", 0}, {"mnist-worker-1", 1}}, kLost},
        OutcomeCase{"ElasticOneIsEnough", false, true, {{"mnist-worker-1", 0}}, kWon},
        OutcomeCase{"ElasticAlsoBesideAFailure",
                    false,
                    true,
                    {{"mnist-worker-0", 1}, {"mnist-worker-1", 0}},
                    kWon},
        OutcomeCase{"ElasticFails", false, true, {{"mnist-worker-1", 1}}, kLost},
        OutcomeCase{
            "ElasticBesideAMasterNeedsTheMaster", true, true, {{"mnist-worker-0", 0}}, kGoesOn}),
    [](const auto& info) { return info.param.name; });

TEST(Progress, RestartingAndBack) {
  Scene scene = Running(MakeJob(true, 2, "ExitCode"));
  scene.NewEvents();
  scene.Advance(seconds{10});
  scene.Exit("mnist-worker-1", 137, "OOMKilled");
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status", "delete Pod mnist-worker-1"));
  const std::string message =
      "PyTorchJob mnist is restarting because 1 Worker replica(s) failed. Pod mnist-worker-1 "
      "exited with code 137 (OOMKilled).";
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  ExpectCondition(scene, "Restarting", "True", "PyTorchJobRestarting", message,
                  "2026-03-01T12:00:15Z");
  ExpectCondition(scene, "Running", "False", "PyTorchJobRestarting", message,
                  "2026-03-01T12:00:15Z");
  EXPECT_THAT(scene.NewEvents(), ElementsAre("Warning PyTorchJobRestarting: " + message));
  scene.RemoveTerminating();
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("status", "create Pod mnist-worker-1"))
      << "the count of failed ones and the pod";
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  scene.Advance(seconds{5});
  scene.StartAll();
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
  ExpectCondition(scene, "Restarting", "False", "PyTorchJobRunning", "PyTorchJob mnist is running.",
                  "2026-03-01T12:00:20Z");
  EXPECT_THAT(scene.NewEvents(), IsEmpty());
  EXPECT_THAT(scene.transitions, ElementsAre(Transition::kCreated, Transition::kRestarted));
}

TEST(Progress, RestartingEndsWhenEveryReplacedReplicaRunsAgain) {
  Scene scene = Running(MakeJob(true, 3, "ExitCode"));
  scene.Exit("mnist-worker-0", 137);
  scene.Exit("mnist-worker-2", 137);
  scene.Step();
  EXPECT_THAT((*scene.Condition("Restarting"))["message"].get<std::string>(),
              ::testing::StartsWith(
                  "PyTorchJob mnist is restarting because 2 Worker replica(s) failed. Pod "
                  "mnist-worker-0 "));
  scene.Settle();
  scene.Start("mnist-worker-0");
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  scene.RestartOperator();
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  scene.Start("mnist-worker-2");
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
}

TEST(Progress, ALostNumberDoesNotEndRestartingEarly) {
  Scene scene = Running(MakeJob(true, 1, "ExitCode"));
  scene.Exit("mnist-worker-0", 137);
  scene.Step();
  scene.RemoveTerminating();
  scene.RestartOperator();  // between the delete and the create
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=F, Restarting=T]");
  scene.Start("mnist-worker-0");
  scene.Settle();
  EXPECT_EQ(scene.conditions(), "[Created=T, Restarting=F, Running=T]");
}

TEST(Progress, InPlaceRestartsOnlyRaiseTheCount) {
  Scene scene = Running(MakeJob(true, 1));
  scene.NewEvents();
  scene.Advance(seconds{9});
  scene.RestartInPlace("mnist-worker-0", 1);
  scene.Step();
  EXPECT_EQ(scene.conditions(), "[Created=T, Running=T]");
  EXPECT_EQ(scene.status()["restartCount"], 1);
  EXPECT_EQ(scene.status()["lastFailure"],
            FromYaml(R"({pod: mnist-worker-0, replicaType: Worker, index: 0, exitCode: 1,
                         reason: Error, time: "2026-03-01T12:00:14Z"})"));
  EXPECT_THAT(scene.NewEvents(), IsEmpty());
}

TEST(Progress, FailedOfAReplica) {
  Scene scene = Running(MakeJob(true, 2, "Never"));
  scene.NewEvents();
  scene.Advance(seconds{10});
  scene.Exit("mnist-worker-0", 3);
  scene.Exit("mnist-worker-1", 4);
  scene.Step();
  const std::string message =
      "PyTorchJob mnist is failed because 2 Worker replica(s) failed. Pod mnist-worker-0 exited "
      "with code 3 (Error).";
  ExpectCondition(scene, "Failed", "True", "PyTorchJobFailed", message, "2026-03-01T12:00:15Z");
  EXPECT_THAT(scene.NewEvents(), ElementsAre("Warning PyTorchJobFailed: " + message));
  EXPECT_EQ(scene.status()["replicaStatuses"]["Worker"]["failed"], 2);
  EXPECT_EQ(scene.status()["lastFailure"]["exitCode"], 3);
  EXPECT_EQ(scene.status()["completionTime"], "2026-03-01T12:00:15Z");
  EXPECT_THAT(scene.transitions, ElementsAre(Transition::kCreated, Transition::kFailed));
}

TEST(Progress, TheMessageOfTheContainerIsQuoted) {
  Scene scene = Running(MakeJob(true, 0, "Never"));
  scene.Exit("mnist-master-0", 1);
  scene.pods["mnist-master-0"]["status"]["containerStatuses"][0]["state"]["terminated"]["message"] =
      "ValueError: no such file";
  scene.Step();
  EXPECT_THAT((*scene.Condition("Failed"))["message"].get<std::string>(),
              ::testing::EndsWith("exited with code 1 (Error): ValueError: no such file."));
  EXPECT_EQ(scene.status()["lastFailure"]["message"], "ValueError: no such file");
}

TEST(Progress, TheEndNeverChangesAgain) {
  for (int code : {0, 1}) {
    Scene scene = Running(MakeJob(true, 1, "Never"));
    scene.Exit("mnist-master-0", code);
    scene.Settle();
    const Json end = scene.status()["conditions"];
    scene.NewEvents();
    scene.Advance(seconds{30});
    if (scene.pods.contains("mnist-worker-0")) scene.Exit("mnist-worker-0", 1 - code);
    scene.Set("/spec/runPolicy/suspend", true);
    scene.Settle();
    scene.Set("/spec/runPolicy/suspend", false);
    scene.Set("/spec/runPolicy/activeDeadlineSeconds", 1);
    scene.Settle();
    EXPECT_EQ(scene.status()["conditions"], end);
    EXPECT_THAT(scene.NewEvents(), IsEmpty());
    EXPECT_FALSE(scene.Observe().pods.empty());
  }
}

}  // namespace
}  // namespace core::test
