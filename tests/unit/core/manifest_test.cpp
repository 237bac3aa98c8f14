// behaviour.md section 1: pods, Service, labels, ownership, init container, template.
#include "core/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit.h"

namespace core::test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Scene Created(Json job, Options options = {}) {
  Scene scene(std::move(job));
  scene.options = std::move(options);
  scene.Step();
  return scene;
}

Json& Template(Json& job, const char* type) {
  return job["spec"]["pytorchReplicaSpecs"][type]["template"];
}

constexpr char kLabelsOfWorker[] = R"(
training.kubeflow.org/operator-name: pytorchjob-controller
training.kubeflow.org/job-name: mnist
training.kubeflow.org/replica-type: worker
training.kubeflow.org/replica-index: "1"
group-name: kubeflow.org
controller-name: pytorch-operator
job-name: mnist
pytorch-job-name: mnist
replica-type: worker
replica-index: "1"
pytorch-replica-type: worker
pytorch-replica-index: "1"
)";

TEST(Manifest, LabelsOfBothEras) {
  Scene scene = Created(MakeJob(true, 2));
  EXPECT_EQ(scene.pods["mnist-worker-1"]["metadata"]["labels"], FromYaml(kLabelsOfWorker));
  const Json& master = scene.pods["mnist-master-0"]["metadata"]["labels"];
  EXPECT_EQ(master["training.kubeflow.org/job-role"], "master");
  EXPECT_EQ(master["job-role"], "master");
  EXPECT_EQ(master["replica-type"], "master");
  EXPECT_FALSE(scene.pods["mnist-worker-0"]["metadata"]["labels"].contains("job-role"));
}

TEST(Manifest, WorkerZeroHasTheMastersRoleWhenThereIsNoMaster) {
  Scene scene = Created(MakeJob(false, 2));
  EXPECT_EQ(scene.pods["mnist-worker-0"]["metadata"]["labels"]["job-role"], "master");
  EXPECT_EQ(scene.pods["mnist-worker-0"]["metadata"]["labels"]["training.kubeflow.org/job-role"],
            "master");
  EXPECT_FALSE(scene.pods["mnist-worker-1"]["metadata"]["labels"].contains("job-role"));
}

TEST(Manifest, OneControllerOwnerReference) {
  Scene scene = Created(MakeJob(true, 1));
  const Json expected = FromYaml(R"([{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: mnist,
      uid: job-uid, controller: true, blockOwnerDeletion: true}])");
  EXPECT_EQ(scene.pods["mnist-worker-0"]["metadata"]["ownerReferences"], expected);
  EXPECT_EQ(scene.services["mnist-master-0"]["metadata"]["ownerReferences"], expected);
  EXPECT_EQ(scene.pods["mnist-worker-0"]["metadata"]["namespace"], "demo");
}

TEST(Manifest, TheServiceOfTheRendezvousHost) {
  Scene scene = Created(MakeJob(true, 2));
  ASSERT_THAT(scene.services, ::testing::SizeIs(1));
  const Json& spec = scene.services.at("mnist-master-0")["spec"];
  EXPECT_EQ(spec, FromYaml(R"({clusterIP: None, publishNotReadyAddresses: true,
      selector: {training.kubeflow.org/operator-name: pytorchjob-controller,
                 training.kubeflow.org/job-name: mnist,
                 training.kubeflow.org/replica-type: master,
                 training.kubeflow.org/replica-index: "0"},
      ports: [{name: pytorchjob-port, port: 23456, targetPort: 23456, protocol: TCP}]})"));
  EXPECT_FALSE(scene.services["mnist-master-0"]["metadata"]["labels"].contains("job-role"));
  for (const auto& [key, value] : spec["selector"].items()) {
    EXPECT_EQ(scene.pods["mnist-master-0"]["metadata"]["labels"][key], value);
    EXPECT_EQ(scene.services["mnist-master-0"]["metadata"]["labels"][key], value);
  }
}

struct ServiceCase {
  const char* name;
  bool master;
  bool elastic;
  bool each;  // --service-per-replica
  std::vector<std::string> services;
};

class Services : public ::testing::TestWithParam<ServiceCase> {};

TEST_P(Services, OnePerJobOrPerReplica) {
  Json job = MakeJob(GetParam().master, 2);
  if (GetParam().elastic) job["spec"]["elasticPolicy"] = Json::object();
  Options options;
  options.service_per_replica = GetParam().each;
  Scene scene = Created(job, options);
  std::vector<std::string> names;
  for (const auto& [name, service] : scene.services) {
    names.push_back(name);
    EXPECT_EQ(service["spec"]["selector"]["training.kubeflow.org/replica-index"],
              name.substr(name.size() - 1));
  }
  EXPECT_EQ(names, GetParam().services);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Services,
    ::testing::Values(
        ServiceCase{"Master", true, false, false, {"mnist-master-0"}},
        ServiceCase{"WorkerOnly", false, false, false, {"mnist-worker-0"}},
        ServiceCase{"Elastic", false, true, false, {"mnist-worker-0", "mnist-worker-1"}},
        ServiceCase{"ElasticBesideAMaster",
                    true,
                    true,
                    false,
                    {"mnist-master-0", "mnist-worker-0", "mnist-worker-1"}},
        ServiceCase{"PerReplica",
                    true,
                    false,
                    true,
                    {"mnist-master-0", "mnist-worker-0", "mnist-worker-1"}},
        ServiceCase{
            "PerReplicaWorkerOnly", false, false, true, {"mnist-worker-0", "mnist-worker-1"}}),
    [](const auto& info) { return info.param.name; });

TEST(Manifest, LabelsAnnotationsAndFinalizersOfTheTemplateAreKept) {
  Json job = MakeJob(true, 0);
  Template(job, "Master")["metadata"] = FromYaml(R"({
      labels: {team: vision, job-name: mine}, annotations: {note: hello},
      finalizers: [example.com/wait], name: ignored, namespace: other})");
  Template(job, "Master")["spec"]["nodeSelector"] = {{"gpu", "yes"}};
  Scene scene = Created(job);
  const Json& metadata = scene.pods.at("mnist-master-0")["metadata"];
  EXPECT_EQ(metadata["labels"]["team"], "vision");
  EXPECT_EQ(metadata["labels"]["job-name"], "mnist") << "the operator's labels win";
  EXPECT_EQ(metadata["annotations"]["note"], "hello");
  EXPECT_EQ(metadata["finalizers"], Json({"example.com/wait"}));
  EXPECT_EQ(metadata["name"], "mnist-master-0");
  EXPECT_EQ(metadata["namespace"], "demo");
  EXPECT_EQ(scene.pods["mnist-master-0"]["spec"]["nodeSelector"]["gpu"], "yes");
}

struct RestartCase {
  const char* policy;  // of the replica
  const char* scope;
  const char* own;  // of the template
  const char* of_pod;
  bool warns;
};

TEST(Manifest, RestartPolicyOfTheReplicaOverridesTheTemplates) {
  for (const RestartCase& c : std::initializer_list<RestartCase>{
           {"", "", "", "OnFailure", false},
           {"Always", "", "", "Always", false},
           {"OnFailure", "", "", "OnFailure", false},
           {"Never", "", "", "Never", false},
           {"ExitCode", "", "", "Never", false},
           {"Never", "", "Always", "Never", true},
           {"Never", "", "Never", "Never", false},
           {"ExitCode", "", "OnFailure", "Never", true},
           {"Always", "Job", "", "Never", false},
           {"OnFailure", "Job", "", "Never", false},
           {"OnFailure", "Job", "OnFailure", "Never", true},
       }) {
    SCOPED_TRACE(std::string(c.policy) + " " + c.scope + " " + c.own);
    Json job = MakeJob(true, 1, c.policy);
    if (*c.scope != 0) job["spec"]["runPolicy"]["restartScope"] = c.scope;
    for (const char* type : {"Master", "Worker"}) {
      if (*c.own != 0) Template(job, type)["spec"]["restartPolicy"] = c.own;
    }
    Scene scene = Created(job);
    EXPECT_EQ(scene.pods["mnist-master-0"]["spec"]["restartPolicy"], c.of_pod);
    EXPECT_EQ(scene.pods["mnist-worker-0"]["spec"]["restartPolicy"], c.of_pod);
    if (c.warns) {
      EXPECT_THAT(scene.NewEvents(),
                  ElementsAre("Warning SetPodTemplateRestartPolicy: Restart policy in pod template "
                              "will be overwritten by restart policy in replica spec"))
          << "one a job";
    } else {
      EXPECT_THAT(scene.NewEvents(), IsEmpty());
    }
  }
}

struct InitCase {
  const char* name;
  bool flag;
  const char* annotation;
  bool in_workers;
  bool warns;
};

class InitContainerOf : public ::testing::TestWithParam<InitCase> {};

TEST_P(InitContainerOf, WorkersWhenAskedFor) {
  const InitCase& c = GetParam();
  Json job = MakeJob(true, 1);
  Template(job, "Worker")["spec"]["initContainers"] = FromYaml("[{name: own, image: a}]");
  if (*c.annotation != 0) {
    job["metadata"]["annotations"]["pytorch-operator.kubeflow.org/init-container"] = c.annotation;
  }
  Options options;
  if (c.flag) options.init_container_image = "alpine:3.10";
  Scene scene = Created(job, options);
  EXPECT_FALSE(scene.pods["mnist-master-0"]["spec"].contains("initContainers"));
  const Json& init = scene.pods["mnist-worker-0"]["spec"]["initContainers"];
  ASSERT_EQ(init.size(), c.in_workers ? 2u : 1u);
  EXPECT_EQ(init[0]["name"], "own");
  if (c.in_workers) {
    EXPECT_EQ(init[1]["name"], "init-pytorch");
    EXPECT_EQ(init[1]["image"], "alpine:3.10");
    EXPECT_EQ(init[1]["env"], FromYaml("[{name: MASTER_ADDR, value: mnist-master-0}]"));
  }
  if (c.warns) {
    EXPECT_THAT(scene.NewEvents(), ElementsAre(HasSubstr("Warning NoInitContainer: ")));
  } else {
    EXPECT_THAT(scene.NewEvents(), IsEmpty());
  }
}

INSTANTIATE_TEST_SUITE_P(Table, InitContainerOf,
                         ::testing::Values(InitCase{"NoFlag", false, "", false, false},
                                           InitCase{"NoFlagAlways", false, "always", false, true},
                                           InitCase{"NoFlagNever", false, "never", false, false},
                                           InitCase{"Flag", true, "", true, false},
                                           InitCase{"FlagAlways", true, "always", true, false},
                                           InitCase{"FlagNever", true, "never", false, false}),
                         [](const auto& info) { return info.param.name; });

TEST(Manifest, OtherWorkersOfAWorkerOnlyJobWaitForWorkerZero) {
  Options options;
  options.init_container_image = "alpine:3.10";
  Scene scene = Created(MakeJob(false, 2), options);
  EXPECT_FALSE(scene.pods["mnist-worker-0"]["spec"].contains("initContainers"));
  EXPECT_EQ(scene.pods["mnist-worker-1"]["spec"]["initContainers"][0]["env"][0]["value"],
            "mnist-worker-0");
}

TEST(Manifest, TheDeclaredPortIsAddedOnce) {
  Json job = MakeJob(true, 1);
  Template(job, "Worker")["spec"]["containers"][0]["ports"] =
      FromYaml("[{name: pytorchjob-port, containerPort: 1111}, {name: http, containerPort: 80}]");
  Scene scene = Created(job);
  EXPECT_EQ(scene.pods["mnist-worker-0"]["spec"]["containers"][0]["ports"].size(), 2u);
  EXPECT_EQ(scene.pods["mnist-master-0"]["spec"]["containers"][0]["ports"],
            FromYaml("[{name: pytorchjob-port, containerPort: 23456, protocol: TCP}]"));
}

TEST(Manifest, OnTheHostsNetworkOnlyTheRendezvousHostTakesThePort) {
  Json job = MakeJob(true, 2);
  for (const char* type : {"Master", "Worker"}) Template(job, type)["spec"]["hostNetwork"] = true;
  Scene scene = Created(job);
  EXPECT_TRUE(scene.pods["mnist-master-0"]["spec"]["containers"][0].contains("ports"));
  EXPECT_FALSE(scene.pods["mnist-worker-0"]["spec"]["containers"][0].contains("ports"));
}

TEST(Manifest, ASingleContainerMayHaveAnyName) {
  Json job = MakeJob(true, 0);
  Template(job, "Master")["spec"]["containers"][0]["name"] = "trainer";
  Scene scene = Created(job);
  EXPECT_EQ(scene.pods["mnist-master-0"]["spec"]["containers"][0]["ports"][0]["name"],
            "pytorchjob-port");
}

TEST(Manifest, RemovedLabelsArePutBack) {
  Scene scene = Created(MakeJob(true, 1));
  scene.StartAll();
  scene.Step();
  Json& labels = scene.pods["mnist-worker-0"]["metadata"]["labels"];
  const Json before = labels;
  labels["team"] = "vision";
  labels.erase("training.kubeflow.org/operator-name");
  labels["training.kubeflow.org/replica-index"] = "9";
  EXPECT_THAT(Lines(scene.Step()), ElementsAre("patch Pod mnist-worker-0"));
  for (const auto& [key, value] : before.items()) EXPECT_EQ(labels[key], value) << key;
  EXPECT_EQ(labels["team"], "vision");
}

TEST(Manifest, PodsCarryTheStartOfTheirJobAndNoOtherTrace) {
  Scene scene = Created(MakeJob(true, 0));
  EXPECT_EQ(scene.pods["mnist-master-0"]["metadata"]["annotations"],
            FromYaml("{pytorch-operator.kubeflow.org/incarnation: \"2026-03-01T12:00:00Z\"}"));
  EXPECT_FALSE(
      scene.pods["mnist-master-0"]["metadata"]["labels"].contains("training.kubeflow.org/attempt"));
}

}  // namespace
}  // namespace core::test
