"""A real one-node cluster with the images of this tree and the operator deployed in it.

One node cluster fits on a machine, so a running one (of `make demo`) is used and stays; otherwise one
is brought up, and taken down at the end unless E2E_KEEP=1."""

import os
import pathlib
import subprocess
import uuid

import pytest
import yaml
from kubernetes import client, config

from cluster import Jobs

ROOT = pathlib.Path(__file__).resolve().parents[2]
CACHE = pathlib.Path(os.environ.get("PTO_CACHE") or pathlib.Path.home() / ".cache/pytorch-operator")
CLUSTER = ROOT / "tests/cluster/cluster.sh"


def run(*command, env=None):
    """Runs one of the project's scripts; its own words are the failure."""
    done = subprocess.run([str(c) for c in command], cwd=ROOT, env={**os.environ, **(env or {})},
                          capture_output=True, text=True)
    if done.returncode != 0:
        pytest.fail(f"{' '.join(map(str, command))} failed:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}",
                    pytrace=False)
    return done.stdout


@pytest.fixture(scope="session")
def kubeconfig():
    if os.geteuid() != 0:
        pytest.skip("a cluster that runs pods needs root")
    running = subprocess.run([CLUSTER, "node"], capture_output=True, text=True)
    folder = running.stdout.strip() or str(CACHE / "e2e-cluster")
    run(ROOT / "tools/images.sh", "build")
    run(CLUSTER, "up", folder, env={"NODE": "1"})
    run(ROOT / "tools/images.sh", "import")
    path = f"{folder}/admin.kubeconfig"
    tag = run(ROOT / "tools/images.sh", "tag", "pytorch-operator").strip()
    run(ROOT / "tools/deploy.sh", f"pytorch-operator:{tag}", env={"KUBECONFIG": path})
    yield path
    if running.returncode != 0 and os.environ.get("E2E_KEEP") != "1":
        run(CLUSTER, "down", folder)


@pytest.fixture(scope="session")
def api(kubeconfig):
    return config.new_client_from_config(kubeconfig)


@pytest.fixture(scope="session")
def kubectl(kubeconfig):
    """Runs kubectl as a user would and returns what it prints."""
    return lambda *args: run(CACHE / "bin/kubectl", "--kubeconfig", kubeconfig, *args)


@pytest.fixture(scope="module")
def namespace(api):
    core = client.CoreV1Api(api)
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    core.create_namespace({"metadata": {"name": name}})
    yield name
    core.delete_namespace(name)


@pytest.fixture(scope="module")
def jobs(api, namespace):
    return Jobs(api, namespace)


@pytest.fixture(scope="session")
def example():
    """The manifest that the demo applies."""
    return lambda: yaml.safe_load((ROOT / "examples/mnist/pytorchjob.yaml").read_text())
