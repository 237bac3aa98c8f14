"""API servers with the CRD, for the tests of admission: the built one and one that emulates 1.33."""

import functools
import os
import pathlib
import subprocess
import time

import kubernetes
import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
CRD = ROOT / "crds" / "kubeflow.org_pytorchjobs.yaml"
BIN = pathlib.Path(
    os.environ.get("PTO_CACHE", pathlib.Path.home() / ".cache" / "pytorch-operator"), "bin"
)


@functools.cache
def crd():
    """The CRD as a tree, not to be changed."""
    return yaml.load(CRD.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def pytest_collection_modifyitems(items):
    """With `--dist loadgroup` all tests here share their API servers."""
    for item in items:
        if pathlib.Path(item.fspath).parent == pathlib.Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("admission"))


class Cluster:
    """A running API server and what the tests do with it."""

    def __init__(self, kubeconfig):
        self.kubeconfig = str(kubeconfig)
        self.api = kubernetes.config.new_client_from_config(self.kubeconfig)
        self.core = kubernetes.client.CoreV1Api(self.api)
        self.objects = kubernetes.client.CustomObjectsApi(self.api)
        self.definitions = kubernetes.client.ApiextensionsV1Api(self.api)

    def kubectl(self, *arguments, text=None, check=True):
        """Runs kubectl; the completed process, with both outputs as text."""
        done = subprocess.run(
            [str(BIN / "kubectl"), "--kubeconfig", self.kubeconfig, *arguments],
            input=text, text=True, capture_output=True, check=False,
        )  # fmt: skip
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done

    def namespace(self, name):
        """Makes a namespace unless it exists; its name."""
        try:
            self.core.create_namespace({"metadata": {"name": name}})
        except kubernetes.client.ApiException as error:
            if error.status != 409:
                raise
        return name

    def wait_served(self, name):
        """Waits until the API server serves a CRD, and its documentation."""
        group = name.partition(".")[2]
        for _ in range(600):
            conditions = self.definitions.read_custom_resource_definition(name).status.conditions
            if any(c.type == "Established" and c.status == "True" for c in conditions or []):
                path = f"/openapi/v3/apis/{group}/v1"
                if self.kubectl("get", "--raw", path, check=False).returncode == 0:
                    return
            time.sleep(0.1)
        raise AssertionError(f"{name} was never served")

    def jobs(self, namespace="default", group="kubeflow.org"):
        """The verbs on PyTorchJobs of one namespace."""
        return Jobs(self, namespace, group)


class Jobs:
    """PyTorchJobs of one namespace as dictionaries; patches are merge patches."""

    def __init__(self, cluster, namespace, group):
        self._where = (group, "v1", namespace, "pytorchjobs")
        self._objects = cluster.objects

    def create(self, job, **options):
        return self._objects.create_namespaced_custom_object(*self._where, job, **options)

    def get(self, name):
        return self._objects.get_namespaced_custom_object(*self._where, name)

    def patch(self, name, patch, **options):
        return self._objects.patch_namespaced_custom_object(
            *self._where, name, patch, **options
        )

    def patch_status(self, name, status):
        return self._objects.patch_namespaced_custom_object_status(
            *self._where, name, {"status": status}
        )

    def scale(self, name, replicas):
        return self._objects.patch_namespaced_custom_object_scale(
            *self._where, name, {"spec": {"replicas": replicas}}
        )

    def get_scale(self, name):
        return self._objects.get_namespaced_custom_object_scale(*self._where, name)

    def delete(self, name):
        return self._objects.delete_namespaced_custom_object(*self._where, name)


@pytest.fixture(scope="session", params=["", "1.33"], ids=["built", "emulates-1.33"])
def bare_cluster(request, tmp_path_factory):
    """An API server without the CRD."""
    folder = tmp_path_factory.mktemp("cluster")
    environment = dict(os.environ, CONTROLLER_MANAGER="0")
    if request.param:
        environment["APISERVER_ARGS"] = f"--emulated-version={request.param}"
    script = str(ROOT / "tests" / "cluster" / "cluster.sh")
    try:
        subprocess.run([script, "up", str(folder)], env=environment, check=True)
        yield Cluster(folder / "admin.kubeconfig")
    finally:
        subprocess.run([script, "down", str(folder)], check=True)


@pytest.fixture(scope="session")
def cluster(bare_cluster):
    """An API server with the CRD, applied by kubectl from the client's side."""
    bare_cluster.kubectl("apply", "-f", str(CRD.parent))
    bare_cluster.wait_served(crd()["metadata"]["name"])
    return bare_cluster
