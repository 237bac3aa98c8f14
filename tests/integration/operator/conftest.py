"""The real operator against a real etcd and API server: fixtures.

Each worker of pytest-xdist has one control plane; each test has its own namespace and its own
operator process, which serves that namespace only. There is no kubelet: a test sets the status of
the pods itself. $OPERATOR_BIN names another operator program than build/release/bin's.
"""

import os
import pathlib
import subprocess

import pytest

from operator_rig import ROOT, Cluster, Stage


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A control plane with the CRD."""
    folder = tmp_path_factory.mktemp("cluster")
    script = str(ROOT / "tests" / "cluster" / "cluster.sh")
    audit = folder / "audit.log"
    policy = folder / "audit-policy.yaml"
    policy.write_text(
        "apiVersion: audit.k8s.io/v1\n"
        "kind: Policy\n"
        "omitStages: [RequestReceived]\n"
        "rules:\n"
        "- level: Metadata\n"
        "  verbs: [create, update, patch, delete, deletecollection]\n"
    )
    environment = dict(
        os.environ,
        APISERVER_ARGS=f"--audit-policy-file={policy} --audit-log-path={audit}",
    )
    try:
        subprocess.run([script, "up", str(folder)], env=environment, check=True)
        cluster = Cluster(folder / "admin.kubeconfig", audit)
        cluster.apply_crd(ROOT / "crds")
        yield cluster
    finally:
        subprocess.run([script, "down", str(folder)], check=True)


@pytest.fixture(scope="session")
def program():
    """The operator's program."""
    path = pathlib.Path(
        os.environ.get("OPERATOR_BIN") or ROOT / "build" / "release" / "bin" / "pytorch-operator"
    )
    assert path.exists(), f"{path} is missing: make build, or set OPERATOR_BIN"
    return path


@pytest.fixture
def stage(cluster, program, tmp_path, request):
    """A namespace of its own, without an operator yet: `stage.start()`."""
    stage = Stage(cluster, program, tmp_path)
    yield stage
    stage.close()
    if request.node.stash.get(FAILED, False):
        stage.report()


FAILED = pytest.StashKey()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" and report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture
def jobs(stage):
    """A namespace with a running operator."""
    stage.start()
    return stage
