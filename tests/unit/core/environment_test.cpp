// behaviour.md section 1, row "environment".
#include "core/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

// The environment of one container as an object; a duplicate name fails the test.
Json Env(const Json& pod, size_t container = 0) {
  Json env = Json::object();
  for (const Json& entry : pod["spec"]["containers"][container]["env"]) {
    const std::string name = entry["name"];
    EXPECT_FALSE(env.contains(name)) << name << " twice";
    env[name] = entry.contains("value") ? entry["value"] : entry["valueFrom"];
  }
  return env;
}

Scene Created(Json job) {
  Scene scene(std::move(job));
  scene.Step();
  return scene;
}

struct EnvCase {
  const char* name;
  const char* spec;  // merged into the spec
  bool master;
  int workers;
  const char* pod;
  const char* env;  // the whole environment
};

const EnvCase kEnvCases[] = {
    {"MasterOfThree", "{}", true, 2, "mnist-master-0",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-master-0, MASTER_PORT: "23456",
         WORLD_SIZE: "3", RANK: "0", PET_MASTER_ADDR: mnist-master-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "0", PET_NNODES: "3", PET_NPROC_PER_NODE: auto})"},
    {"LastWorkerOfThree", "{}", true, 2, "mnist-worker-1",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-master-0, MASTER_PORT: "23456",
         WORLD_SIZE: "3", RANK: "2", PET_MASTER_ADDR: mnist-master-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "2", PET_NNODES: "3", PET_NPROC_PER_NODE: auto})"},
    {"MasterAlone", "{}", true, 0, "mnist-master-0",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-master-0, MASTER_PORT: "23456",
         WORLD_SIZE: "1", RANK: "0", PET_MASTER_ADDR: mnist-master-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "0", PET_NNODES: "1", PET_NPROC_PER_NODE: auto})"},
    {"WorkerOnlyGetsTheCompleteSet", "{}", false, 2, "mnist-worker-1",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-worker-0, MASTER_PORT: "23456",
         WORLD_SIZE: "2", RANK: "1", PET_MASTER_ADDR: mnist-worker-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "1", PET_NNODES: "2", PET_NPROC_PER_NODE: auto})"},
    {"ProcessesPerNodeMultiplyTheWorld", "{nprocPerNode: \"4\"}", true, 2, "mnist-worker-0",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-master-0, MASTER_PORT: "23456",
         WORLD_SIZE: "12", RANK: "1", PET_MASTER_ADDR: mnist-master-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "1", PET_NNODES: "3", PET_NPROC_PER_NODE: "4"})"},
    {"GpuIsForTorchrunToCount", "{nprocPerNode: gpu}", true, 2, "mnist-worker-0",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-master-0, MASTER_PORT: "23456",
         WORLD_SIZE: "3", RANK: "1", PET_MASTER_ADDR: mnist-master-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "1", PET_NNODES: "3", PET_NPROC_PER_NODE: gpu})"},
    {"ElasticDefaults", "{elasticPolicy: {}}", false, 3, "mnist-worker-2",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-worker-0, MASTER_PORT: "23456",
         WORLD_SIZE: "3", RANK: "2", PET_MASTER_ADDR: mnist-worker-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "2", PET_NNODES: "3:3", PET_NPROC_PER_NODE: auto,
         PET_RDZV_ENDPOINT: "mnist-worker-0:23456", PET_RDZV_BACKEND: c10d})"},
    {"ElasticMinimumOnly", "{elasticPolicy: {minReplicas: 1}}", false, 3, "mnist-worker-0",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-worker-0, MASTER_PORT: "23456",
         WORLD_SIZE: "3", RANK: "0", PET_MASTER_ADDR: mnist-worker-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "0", PET_NNODES: "1:3", PET_NPROC_PER_NODE: auto,
         PET_RDZV_ENDPOINT: "mnist-worker-0:23456", PET_RDZV_BACKEND: c10d})"},
    {"ElasticMaximumOnly", "{elasticPolicy: {maxReplicas: 5}}", false, 3, "mnist-worker-0",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-worker-0, MASTER_PORT: "23456",
         WORLD_SIZE: "3", RANK: "0", PET_MASTER_ADDR: mnist-worker-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "0", PET_NNODES: "3:5", PET_NPROC_PER_NODE: auto,
         PET_RDZV_ENDPOINT: "mnist-worker-0:23456", PET_RDZV_BACKEND: c10d})"},
    {"ElasticInFull",
     R"({elasticPolicy: {minReplicas: 1, maxReplicas: 4, rdzvBackend: etcd-v2, rdzvHost: store,
         rdzvPort: 2379, rdzvId: run7, rdzvConf: [{key: a, value: b}, {key: timeout, value: "9"}],
         standalone: true, nProcPerNode: 2, maxRestarts: 0}})",
     false, 2, "mnist-worker-0",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-worker-0, MASTER_PORT: "23456",
         WORLD_SIZE: "2", RANK: "0", PET_MASTER_ADDR: mnist-worker-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "0", PET_NNODES: "1:4", PET_NPROC_PER_NODE: "2",
         PET_RDZV_ENDPOINT: "store:2379", PET_RDZV_BACKEND: etcd-v2, PET_RDZV_ID: run7,
         PET_RDZV_CONF: "a=b,timeout=9", PET_STANDALONE: "", PET_MAX_RESTARTS: "0"})"},
    {"ElasticBesideAMasterMeetsAtWorkerZero", "{elasticPolicy: {minReplicas: 1, rdzvConf: []}}",
     true, 2, "mnist-master-0",
     R"({PYTHONUNBUFFERED: "1", MASTER_ADDR: mnist-master-0, MASTER_PORT: "23456",
         WORLD_SIZE: "3", RANK: "0", PET_MASTER_ADDR: mnist-master-0, PET_MASTER_PORT: "23456",
         PET_NODE_RANK: "0", PET_NNODES: "1:2", PET_NPROC_PER_NODE: auto,
         PET_RDZV_ENDPOINT: "mnist-worker-0:23456", PET_RDZV_BACKEND: c10d})"},
};

class Environment : public ::testing::TestWithParam<EnvCase> {};

TEST_P(Environment, OfTheTrainingContainer) {
  const EnvCase& c = GetParam();
  Json job = MakeJob(c.master, c.workers);
  job["spec"].merge_patch(FromYaml(c.spec));
  Scene scene = Created(job);
  ASSERT_TRUE(scene.pods.contains(c.pod));
  EXPECT_EQ(Json::diff(FromYaml(c.env), Env(scene.pods[c.pod])), Json::array());
}

INSTANTIATE_TEST_SUITE_P(Table, Environment, ::testing::ValuesIn(kEnvCases),
                         [](const auto& info) { return info.param.name; });

struct PortCase {
  const char* name;
  const char* master;     // merged into the Master's container
  const char* worker;     // merged into the Worker's container
  const char* port;       // MASTER_PORT everywhere
  const char* announced;  // the Service's
};

const PortCase kPortCases[] = {
    {"Default", "{}", "{}", "23456", "23456"},
    {"NamedPortOfTheMaster", "{ports: [{name: pytorchjob-port, containerPort: 29500}]}", "{}",
     "29500", "29500"},
    {"OtherPortsDoNotCount", "{ports: [{name: http, containerPort: 80}, {containerPort: 81}]}",
     "{}", "23456", "23456"},
    {"OwnVariableOfTheMaster", "{env: [{name: MASTER_PORT, value: \"29400\"}]}", "{}", "29400",
     "29400"},
    {"TheNamedPortBeatsTheVariable",
     R"({ports: [{name: pytorchjob-port, containerPort: 29500}],
         env: [{name: MASTER_PORT, value: "29400"}]})",
     "{}", "29500", "29500"},
    {"TheWorkersPortDoesNotCount", "{}",
     R"({ports: [{name: pytorchjob-port, containerPort: 1111}],
         env: [{name: MASTER_PORT, value: "2222"}]})",
     "23456", "23456"},
    {"NonsenseDoesNotCount", "{env: [{name: MASTER_PORT, value: \"0x10\"}]}", "{}", "23456",
     "23456"},
    {"AValueFromElsewhereIsUnknown",
     "{env: [{name: MASTER_PORT, valueFrom: {fieldRef: {fieldPath: status.podIP}}}]}", "{}",
     "23456", "23456"},
};

class RendezvousPortOf : public ::testing::TestWithParam<PortCase> {};

TEST_P(RendezvousPortOf, IsTheSameEverywhere) {
  const PortCase& c = GetParam();
  Json job = MakeJob(true, 1);
  auto& replicas = job["spec"]["pytorchReplicaSpecs"];
  replicas["Master"]["template"]["spec"]["containers"][0].update(FromYaml(c.master));
  replicas["Worker"]["template"]["spec"]["containers"][0].update(FromYaml(c.worker));
  Scene scene = Created(job);
  for (const char* pod : {"mnist-master-0", "mnist-worker-0"}) {
    const Json env = Env(scene.pods[pod]);
    EXPECT_EQ(env["MASTER_PORT"], c.port) << pod;
    EXPECT_EQ(env["PET_MASTER_PORT"], c.port) << pod;
  }
  const Json& ports = scene.services["mnist-master-0"]["spec"]["ports"];
  ASSERT_EQ(ports.size(), 1u);
  EXPECT_EQ(ports[0]["name"], "pytorchjob-port");
  EXPECT_EQ(ports[0]["port"].dump(), c.announced);
}

INSTANTIATE_TEST_SUITE_P(Table, RendezvousPortOf, ::testing::ValuesIn(kPortCases),
                         [](const auto& info) { return info.param.name; });

TEST(Environment, WorkerZeroWithoutAMasterDecidesThePort) {
  Json job = MakeJob(false, 2);
  job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["ports"] =
      FromYaml("[{name: pytorchjob-port, containerPort: 29500}]");
  Scene scene = Created(job);
  EXPECT_EQ(Env(scene.pods["mnist-worker-1"])["MASTER_PORT"], "29500");
}

TEST(Environment, EveryContainerHasIt) {
  Json job = MakeJob(true, 1);
  job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"] =
      FromYaml("[{name: sidecar, image: a}, {name: pytorch, image: b}]");
  Scene scene = Created(job);
  const Json& pod = scene.pods["mnist-worker-0"];
  EXPECT_EQ(Env(pod, 0), Env(pod, 1));
  EXPECT_EQ(Env(pod, 0)["RANK"], "1");
  EXPECT_FALSE(pod["spec"]["containers"][0].contains("ports")) << "the port is the trainer's";
  EXPECT_EQ(pod["spec"]["containers"][1]["ports"][0]["containerPort"], 23456);
}

TEST(Environment, RendezvousVariablesOfTheTemplateAreReplacedInPlaceWithOneWarning) {
  Json job = MakeJob(true, 2);
  job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["env"] =
      FromYaml(R"([{name: FIRST, value: a}, {name: WORLD_SIZE, value: "1"},
                   {name: PYTHONUNBUFFERED, value: "0"},
                   {name: RANK, valueFrom: {fieldRef: {fieldPath: metadata.name}}},
                   {name: WORLD_SIZE, value: "7"}, {name: NCCL_DEBUG, value: INFO},
                   {name: PET_NNODES, value: "3"}, {name: MASTER_ADDR, value: localhost}])");
  Scene scene = Created(job);
  std::vector<std::string> order;
  for (const Json& e : scene.pods["mnist-worker-1"]["spec"]["containers"][0]["env"]) {
    order.push_back(e["name"].get<std::string>() + "=" + e["value"].get<std::string>());
  }
  EXPECT_THAT(order, ElementsAre("MASTER_PORT=23456", "PET_MASTER_PORT=23456",
                                 "PET_MASTER_ADDR=mnist-master-0", "PET_NPROC_PER_NODE=auto",
                                 "PET_NODE_RANK=2", "FIRST=a", "WORLD_SIZE=3", "PYTHONUNBUFFERED=0",
                                 "RANK=2", "NCCL_DEBUG=INFO", "PET_NNODES=3",
                                 "MASTER_ADDR=mnist-master-0"));
  EXPECT_THAT(scene.NewEvents(),
              ElementsAre("Warning ReplacedEnvironmentVariable: The pod template sets WORLD_SIZE, "
                          "RANK, MASTER_ADDR; the operator's own values replace it, remove it from "
                          "the template"));
  scene.StartAll();
  scene.Step();
  EXPECT_THAT(scene.NewEvents(), IsEmpty()) << "said once";
}

TEST(Environment, TheSameValueIsNoReasonToWarn) {
  Json job = MakeJob(true, 1);
  auto& replicas = job["spec"]["pytorchReplicaSpecs"];
  replicas["Worker"]["template"]["spec"]["containers"][0]["env"] =
      FromYaml("[{name: RANK, value: \"1\"}, {name: WORLD_SIZE, value: \"2\"}]");
  EXPECT_THAT(Created(job).NewEvents(), IsEmpty());
  replicas["Worker"]["replicas"] = 2;
  replicas["Worker"]["template"]["spec"]["containers"][0]["env"] =
      FromYaml("[{name: RANK, value: \"1\"}]");
  EXPECT_THAT(Created(job).NewEvents(), Contains(::testing::HasSubstr("sets RANK;")))
      << "right for worker 0 only";
}

TEST(Environment, InitContainersOfTheUserAreLeftAlone) {
  Json job = MakeJob(true, 0);
  const Json init = FromYaml("[{name: fetch, image: a, env: [{name: RANK, value: x}]}]");
  job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"]["initContainers"] = init;
  Scene scene = Created(job);
  EXPECT_EQ(scene.pods["mnist-master-0"]["spec"]["initContainers"], init);
  EXPECT_THAT(scene.NewEvents(), IsEmpty());
}

TEST(Environment, ShapesOfEnvThatAreNoListDoNotHurt) {
  Json container = {{"name", "pytorch"}, {"env", "text"}};
  ApplyVariables({{"RANK", "0"}}, &container, nullptr);
  EXPECT_EQ(container["env"].size(), 2u);
  container["env"] = Json::array({nullptr, 7, Json::object()});
  ApplyVariables({{"RANK", "0"}}, &container, nullptr);
  EXPECT_THAT(container["env"], Not(IsEmpty()));
}

struct TrainerCase {
  const char* containers;
  const char* name;
};

TEST(Environment, WhichContainerTrains) {
  for (const TrainerCase& c : {TrainerCase{"[{name: pytorch}]", "pytorch"},
                               {"[{name: main}]", "main"},
                               {"[{name: a}, {name: pytorch}]", "pytorch"},
                               {"[{name: a}, {name: b}]", "pytorch"},
                               {"[{}]", "pytorch"},
                               {"[]", "pytorch"},
                               {"text", "pytorch"}}) {
    EXPECT_EQ(TrainingContainer({{"spec", {{"containers", FromYaml(c.containers)}}}}), c.name)
        << c.containers;
  }
  EXPECT_EQ(TrainingContainer(nullptr), "pytorch");
}

}  // namespace
}  // namespace core::test
