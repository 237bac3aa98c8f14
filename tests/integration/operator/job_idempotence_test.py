"""Nothing is written while nothing changes: a touched job, a restarted operator, an old CRD."""

import subprocess

import pytest
import yaml

from operator_rig import ROOT, Cluster, Stage, pytorchjob, wait_for

OWN_FIELDS = ("summary", "observedGeneration", "restartCount", "attempt", "accountedPods",
              "waiting", "lastFailure")  # fmt: skip


def ended(stage, name, phase):
    stage.create(pytorchjob(name, workers=1, policy="Never"))
    stage.run_all(name)
    if phase != "Running":
        stage.set_pods(name, phase)
        stage.wait_state(name, phase)


def test_touching_a_job_twenty_times_writes_nothing(jobs):
    for phase in ("Running", "Succeeded", "Failed"):
        ended(jobs, phase.lower(), phase)
    jobs.create(pytorchjob("suspended", run_policy={"suspend": True}))
    jobs.wait_state("suspended", "Suspended")
    before = jobs.settle()
    for i in range(20):
        for name in ("running", "succeeded", "failed", "suspended"):
            jobs.patch(name, {"metadata": {"annotations": {"touched": str(i)}}})
        jobs.core.patch_namespaced_pod(
            "running-master-0", jobs.namespace,
            {"metadata": {"annotations": {"touched": str(i)}}},
        )  # fmt: skip
    passes = jobs.operator.metric("controller_runtime_reconcile_total")
    assert jobs.settle() == before
    assert passes > 0


def test_restarting_over_a_hundred_jobs_writes_nothing(stage):
    stage.start()
    for i in range(100):
        stage.create(pytorchjob(f"j{i:02}", workers=0))
    wait_for("all pods", lambda: len(stage.pods()) == 100, patience=180)
    for i in range(100):
        stage.set_pod(f"j{i:02}-master-0", "Running" if i % 2 else "Succeeded")
    for i in range(100):
        stage.wait_state(f"j{i:02}", "Running" if i % 2 else "Succeeded")
    stage.settle()
    stage.restart()
    wait_for("a look at each",
             lambda: stage.operator.metric("controller_runtime_reconcile_total") >= 100)
    stage.settle()
    assert stage.operator.writes() == 0
    assert stage.operator.metric("training_operator_jobs_created_total") == 0
    assert stage.operator.metric("training_operator_jobs_successful_total") == 0


@pytest.fixture
def old_stage(program, tmp_path_factory, tmp_path):
    """A cluster whose CRD knows none of our own fields, as training-operator's does not."""
    folder = tmp_path_factory.mktemp("old")
    script = str(ROOT / "tests" / "cluster" / "cluster.sh")
    try:
        subprocess.run([script, "up", str(folder)], check=True)
        cluster = Cluster(folder / "admin.kubeconfig", folder / "no-audit")
        crd = yaml.safe_load((ROOT / "crds" / "kubeflow.org_pytorchjobs.yaml").read_text())
        properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
        status = properties["status"]["properties"]
        for field in OWN_FIELDS:
            del status[field]
        for field in ("ready", "completedIndexes"):
            del status["replicaStatuses"]["additionalProperties"]["properties"][field]
        path = folder / "crd.yaml"
        path.write_text(yaml.safe_dump(crd))
        cluster.apply_crd(path)
        stage = Stage(cluster, program, tmp_path)
        yield stage
        stage.close()
    finally:
        subprocess.run([script, "down", str(folder)], check=True)


def test_an_old_crd(old_stage):
    """All of v1 works, it is said once, and nothing is written more often than else."""
    stage = old_stage
    stage.start()
    stage.create(pytorchjob("mnist", workers=1))
    stage.run_all("mnist")
    before = stage.settle()
    for i in range(5):
        stage.patch("mnist", {"metadata": {"annotations": {"touched": str(i)}}})
    assert stage.settle() == before
    assert stage.operator.metric("training_operator_crd_outdated") == 1
    stage.set_pods("mnist", "Succeeded")
    stage.wait_state("mnist", "Succeeded")
    stage.create(pytorchjob("second", workers=0, policy="Never"))
    stage.run_all("second")
    stage.set_pods("second", "Failed")
    stage.wait_state("second", "Failed")
    stage.settle()
    assert len(stage.events(reason="CRDOutdated")) == 1
    assert stage.operator.log.read_text().count("is older than this operator") == 1
    # Our CRD comes: the next write shows it.
    stage.cluster.apply_crd(ROOT / "crds")
    stage.create(pytorchjob("third", workers=0))
    stage.run_all("third")
    wait_for("the end of it",
             lambda: stage.operator.metric("training_operator_crd_outdated") == 0)
