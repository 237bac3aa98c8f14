"""operator/kube against a real etcd and API server, through the program kube_probe.

$PROBE_BIN names another probe than build/release/bin's.
"""

import pytest

from probe_rig import Plane


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    plane = Plane(tmp_path_factory.mktemp("kube") / "plane")
    try:
        yield plane
    finally:
        plane.down()
