"""What users' tools and manifests send is accepted, and comes back in a form that they can read."""

import glob
import pathlib

import admission_tables as tables
import conftest
import pytest
import yaml
from kubeflow.training import TrainingClient, models
from kubernetes.client import V1ObjectMeta

HERE = pathlib.Path(__file__).parent
SDK_STATUS = {
    "conditions": [
        {"type": "Created", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
        {"type": "Running", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
    ],
    "replicaStatuses": {"Master": {"active": 1, "ready": 1, "selector": "a=b"}},
    "summary": "1/1",
    "lastFailure": {"pod": "p", "exitCode": 1},
}


def manifests():
    """All PyTorchJobs among the shapes here and the examples of the project."""
    files = [str(HERE / "manifests" / "tutorial-shapes.yaml")]
    files += sorted(glob.glob(str(conftest.ROOT / "examples" / "**" / "*.yaml"), recursive=True))
    for file in files:
        for document in yaml.safe_load_all(pathlib.Path(file).read_text()):
            if isinstance(document, dict) and document.get("kind") == "PyTorchJob":
                yield pytest.param(document, id=document["metadata"]["name"])


@pytest.mark.parametrize("manifest", list(manifests()))
def test_a_manifest_is_accepted_strictly(cluster, manifest):
    manifest["metadata"].setdefault("namespace", "default")
    cluster.namespace(manifest["metadata"]["namespace"])
    done = cluster.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-",
                           text=yaml.safe_dump(manifest))  # fmt: skip
    assert done.stderr == ""


@pytest.fixture
def sdk(cluster):
    """The training SDK's client, in a namespace of its own."""
    return TrainingClient(config_file=cluster.kubeconfig, namespace=cluster.namespace("sdk"))


def test_the_sdk_creates_reads_updates_and_deletes_a_job(cluster, sdk):
    sdk.create_job(
        name="function",
        base_image="example.com/train:1",
        train_func=lambda parameters: print(parameters),
        parameters={"lr": 0.1},
        num_workers=3,
        num_procs_per_worker=2,
        resources_per_worker={"cpu": "1", "memory": "2Gi"},
        env_vars={"A": "b"},
    )
    try:
        job = sdk.get_job("function")
        assert job.spec.nproc_per_node == "2"
        assert job.spec.pytorch_replica_specs["Worker"].replicas == 2
        assert job.spec.run_policy is not None
        cluster.jobs("sdk").patch_status("function", SDK_STATUS)
        assert sdk.is_job_running("function")
        job = sdk.get_job("function")
        job.spec.run_policy.backoff_limit = 4
        sdk.update_job(job, "function")  # sends the whole object, status included
        stored = cluster.jobs("sdk").get("function")
        assert stored["spec"]["runPolicy"]["backoffLimit"] == 4
        assert stored["status"] == SDK_STATUS
    finally:
        sdk.delete_job("function")


def test_the_sdk_creates_a_job_from_an_image(sdk):
    sdk.create_job(name="image", base_image="example.com/train:1", num_workers=1)
    sdk.delete_job("image")


def test_the_sdk_creates_a_job_from_its_models(cluster, sdk):
    container = {"name": "pytorch", "image": "example.com/train:1"}
    replica = models.KubeflowOrgV1ReplicaSpec(
        replicas=1, restart_policy="Never", template={"spec": {"containers": [container]}}
    )
    sdk.create_job(
        models.KubeflowOrgV1PyTorchJob(
            api_version="kubeflow.org/v1",
            kind="PyTorchJob",
            metadata=V1ObjectMeta(name="models"),
            spec=models.KubeflowOrgV1PyTorchJobSpec(
                run_policy=models.KubeflowOrgV1RunPolicy(
                    clean_pod_policy="None",
                    scheduling_policy=models.KubeflowOrgV1SchedulingPolicy(min_available=10),
                ),
                pytorch_replica_specs={"Master": replica, "Worker": replica},
            ),
        )
    )
    try:
        job = sdk.get_job("models")
        job.spec.run_policy.scheduling_policy.min_available = 2
        sdk.update_job(job, "models")
        stored = cluster.jobs("sdk").get("models")
        assert stored["spec"]["runPolicy"]["schedulingPolicy"] == {"minAvailable": 2}
    finally:
        sdk.delete_job("models")


def test_a_job_of_the_oldest_sdk_loses_its_flat_policies_and_is_readable(cluster, sdk):
    flat = {"activeDeadlineSeconds": 9, "backoffLimit": 2, "cleanPodPolicy": "None",
            "ttlSecondsAfterFinished": 5}  # fmt: skip
    job = tables.job({"metadata": {"name": "oldest", "namespace": "sdk"}, "spec": flat})
    cluster.jobs("sdk").create(job)
    try:
        read = sdk.get_job("oldest")
        assert read.spec.run_policy.backoff_limit is None
        assert sorted(cluster.jobs("sdk").get("oldest")["spec"]) == ["pytorchReplicaSpecs", "runPolicy"]
    finally:
        sdk.delete_job("oldest")
