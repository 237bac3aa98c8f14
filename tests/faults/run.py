#!/usr/bin/env python3
"""The fault ring: every scenario at every fault ends as it does without one.

  run.py                         the bounded part
  run.py --full                  every point
  run.py --scenario success      some scenarios (repeatable)
  run.py --leaders               only the two operators with leader election
  run.py --kind kill-before      some kinds of faults (repeatable)
  run.py success/kill-before/3   one point (repeatable): how to run a failure again

The operator is $OPERATOR_BIN, or build/release/bin/pytorch-operator. Brings up its own API server.
Exit status 0 only if something ran and every point came to the expected end.
"""

import argparse
import asyncio
import collections
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import faultproxy  # noqa: E402
from faults.leaders import run_leaders  # noqa: E402
from faults.points import all_points  # noqa: E402
from faults.process import BINARY  # noqa: E402
from faults.ring import Ring  # noqa: E402
from faults.scenarios import SCENARIOS  # noqa: E402
from faults.world import Cluster  # noqa: E402

@dataclasses.dataclass
class Result:
    """Of one point or case; `failure` is None when it came to the expected end."""

    group: str
    kind: str
    name: str
    failure: str | None


KUBECTL = pathlib.Path(
    os.environ.get("PTO_CACHE", pathlib.Path.home() / ".cache" / "pytorch-operator"), "bin", "kubectl"
)


def arguments(words=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, default=[])
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("--leaders", action="store_true")
    parser.add_argument("--junit", help="file for the results, a test case a point")
    parser.add_argument("--parallel", type=int, default=8, help="runs at a time")
    parser.add_argument("--kubeconfig", help="an administrator's, of an API server that has the CRD; "
                        "default: one is brought up")  # fmt: skip
    parser.add_argument("--logs", help="folder for the logs of failed runs")
    parser.add_argument("point", nargs="*")
    return parser.parse_args(words)


def start_cluster(folder):
    """An API server with the CRD; its administrator's kubeconfig."""
    script = ROOT / "tests" / "cluster" / "cluster.sh"
    kubeconfig = folder / "admin.kubeconfig"
    subprocess.run([script, "up", folder], env={**os.environ, "CONTROLLER_MANAGER": "0"},
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    kubectl = [KUBECTL, "--kubeconfig", kubeconfig]
    crd = ROOT / "crds" / "kubeflow.org_pytorchjobs.yaml"
    subprocess.run([*kubectl, "apply", "-f", crd], check=True, stdout=subprocess.DEVNULL)
    served = [*kubectl, "get", "--raw", "/apis/kubeflow.org/v1/pytorchjobs"]
    for _ in range(300):
        if subprocess.run(served, capture_output=True, check=False).returncode == 0:
            return kubeconfig
        time.sleep(0.1)
    sys.exit("the API server does not serve pytorchjobs")


def stop_cluster(folder):
    subprocess.run([ROOT / "tests" / "cluster" / "cluster.sh", "down", folder], check=True)


def chosen_scenarios(options):
    names = set(options.scenario) | {name.split("/")[0] for name in options.point}
    unknown = names - set(SCENARIOS)
    if unknown:
        sys.exit(f"no such scenario: {', '.join(sorted(unknown))}; known: {', '.join(SCENARIOS)}")
    return [scenario for name, scenario in SCENARIOS.items() if not names or name in names]


def chosen_points(options, scenario, size):
    full = options.full or bool(options.point)
    points = [p for of_kind in all_points(scenario.name, size, full).values() for p in of_kind]
    if options.point:
        return [point for point in points if point.name in options.point]
    return [point for point in points if not options.kind or point.kind in options.kind]


async def run_ring(options, kubeconfig, folder):
    """Runs what was chosen: a Result for each point and case. SIGTERM ends it and all it started."""
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    upstream = faultproxy.Upstream(kubeconfig)
    cluster = Cluster(upstream)
    await cluster.start()
    certificates = faultproxy.Certificates(folder)
    ring = Ring(cluster, upstream, certificates, folder)
    slots = asyncio.Semaphore(options.parallel)
    results = []

    def note(group, kind, name, failure):
        results.append(Result(group, kind, name, failure))
        if failure:
            print(failure, flush=True)

    async def one(point, reference):
        async with slots:
            failure = await ring.point(point, reference)
        note(point.scenario, point.kind, point.name, failure)

    async def all_of(scenario):
        begun = time.monotonic()
        async with slots:
            reference = await ring.reference(scenario)
        points = chosen_points(options, scenario, reference.size)
        await asyncio.gather(*(one(point, reference) for point in points))
        failed = sum(1 for result in results if result.group == scenario.name and result.failure)
        print(f"{scenario.name:<28}{reference.size.writes:>3} writes  {len(points):>4} points  "
              f"{failed:>3} failed  {time.monotonic() - begun:6.1f} s", flush=True)  # fmt: skip

    async def leaders():
        cases = await run_leaders(cluster, upstream, certificates, folder)
        for name, failure in cases:
            note("leaders", "leaders", f"leaders/{name}", failure)

    everything = not (options.scenario or options.kind or options.point or options.leaders)
    try:
        if not options.leaders:
            await asyncio.gather(*(all_of(scenario) for scenario in chosen_scenarios(options)))
        if everything or options.leaders:
            await leaders()
    finally:
        await cluster.stop()
        upstream.close()
    return results


def write_junit(file, results):
    suite = ElementTree.Element("testsuite", name="faults", tests=str(len(results)))
    for result in results:
        group, _, name = result.name.partition("/")
        case = ElementTree.SubElement(suite, "testcase", classname=group, name=name)
        if result.failure:
            ElementTree.SubElement(case, "failure", message="see below").text = result.failure
    ElementTree.ElementTree(suite).write(file)


def main():
    options = arguments()
    if not os.access(BINARY, os.X_OK):
        sys.exit(f"no operator at {BINARY}: build it, or set OPERATOR_BIN")
    logs = pathlib.Path(options.logs or tempfile.mkdtemp(prefix="faults-"))
    logs.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    begun = time.monotonic()
    if options.kubeconfig:
        results = asyncio.run(run_ring(options, options.kubeconfig, logs))
    else:
        with tempfile.TemporaryDirectory(prefix="faults-cluster-") as temporary:
            folder = pathlib.Path(temporary) / "cluster"
            try:
                results = asyncio.run(run_ring(options, start_cluster(folder), logs))
            finally:
                stop_cluster(folder)
    if options.junit:
        write_junit(options.junit, results)
    kinds = collections.Counter(result.kind for result in results)
    failed = sum(1 for result in results if result.failure)
    print("by kind: " + ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items())))
    print(f"{len(results)} points, {len(results) - failed} passed, {failed} failed, "
          f"{time.monotonic() - begun:.0f} s")  # fmt: skip
    if failed:
        print(f"logs of the failed runs: {logs}")
    sys.exit(0 if results and not failed else 1)


if __name__ == "__main__":
    main()
