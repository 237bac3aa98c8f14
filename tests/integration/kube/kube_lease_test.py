"""Leader election by real processes over a real API server."""

import os
import signal
import time
import uuid

from probe_rig import Probe, ask


def leading(value):
    return lambda line: line.get("leading") is value


def test_released_on_stop_and_taken_over_at_once(plane):
    name = f"lease-{uuid.uuid4().hex[:8]}"
    with Probe(plane.admin, "lease", "default", name, "one") as one:
        one.next("election", leading(True))
        with Probe(plane.admin, "lease", "default", name, "two") as two:
            assert one.stop()[-2] == {"leading": False}
            two.next("takeover", leading(True))
            spec = ask(plane.admin, "get", "leases.v1.coordination.k8s.io", "default", name)["reply"]["spec"]
            assert spec["holderIdentity"] == "two" and spec["leaseTransitions"] == 1
            assert spec["leaseDurationSeconds"] == 15
            two.stop()
    spec = ask(plane.admin, "get", "leases.v1.coordination.k8s.io", "default", name)["reply"]["spec"]
    assert spec.get("holderIdentity", "") == ""


def test_a_killed_leader_is_replaced_but_not_before_its_lease_has_ended(plane):
    name = f"lease-{uuid.uuid4().hex[:8]}"
    with Probe(plane.admin, "lease", "default", name, "one") as one:
        one.next("election", leading(True))
        with Probe(plane.admin, "lease", "default", name, "two") as two:
            time.sleep(3)  # so that it has seen a renewal
            killed = time.monotonic()
            one.process.kill()
            two.next("takeover", leading(True))
            # Renewed at most 2 s before it was killed, or being renewed.
            assert time.monotonic() - killed > 12


def test_a_leader_that_was_stopped_learns_that_it_is_none(plane):
    name = f"lease-{uuid.uuid4().hex[:8]}"
    with Probe(plane.admin, "lease", "default", name, "one") as one:
        one.next("election", leading(True))
        os.kill(one.process.pid, signal.SIGSTOP)
        with Probe(plane.admin, "lease", "default", name, "two") as two:
            two.next("takeover", leading(True))
            os.kill(one.process.pid, signal.SIGCONT)
            one.next("the end", leading(False))
            two.stop()
        one.next("being elected again", leading(True))
