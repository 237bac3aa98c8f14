"""An API server for the proxy's own tests."""

import os
import pathlib
import subprocess

import pytest

import faultproxy

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items):
    """With `--dist loadgroup` all tests here share one API server."""
    for item in items:
        if pathlib.Path(item.fspath).parent == pathlib.Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("faultproxy"))


@pytest.fixture(scope="session")
def kubeconfig(tmp_path_factory):
    """The administrator's kubeconfig of a running API server."""
    folder = tmp_path_factory.mktemp("cluster")
    script = str(ROOT / "tests" / "cluster" / "cluster.sh")
    environment = dict(os.environ, CONTROLLER_MANAGER="0")
    try:
        subprocess.run([script, "up", str(folder)], env=environment, check=True)
        yield folder / "admin.kubeconfig"
    finally:
        subprocess.run([script, "down", str(folder)], check=True)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    return faultproxy.Certificates(tmp_path_factory.mktemp("certificates"))
