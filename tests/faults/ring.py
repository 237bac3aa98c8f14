"""Runs scenarios: once without faults for what to expect, then at each point."""

import asyncio
import dataclasses
import pathlib
import secrets
import time

from faultproxy import Proxy, Rule, requests
from faultproxy.streams import StreamFault

from .kubelet import Kubelet
from .outcome import Tolerance, differences, invariant_broken, outcome
from .points import ALWAYS, Size
from .process import Operator
from .scenarios import SCENARIOS
from .world import Stuck

SETTLE = 0.4  # seconds in which nothing more may come after the end
QUIET = 1.5  # the same for the run that says what to expect
RESULT_PATIENCE = 30


class Count(StreamFault):
    """Changes nothing and counts."""

    async def lines(self, source):
        async for line in source:
            self._counts(line)
            yield line


@dataclasses.dataclass
class Reference:
    """A run without faults."""

    outcome: dict
    size: Size
    writes: list  # of the record, as text


class Ring:
    """Runs on one API server. `folder` gets the logs of runs that failed."""

    def __init__(self, cluster, upstream, certificates, folder, flags=()):
        self._cluster = cluster
        self._upstream = upstream
        self._certificates = certificates
        self._folder = pathlib.Path(folder)
        self._flags = flags
        self._runs = 0
        self._id = secrets.token_hex(2)  # another ring may have used this API server before

    async def reference(self, scenario):
        """Runs it without faults. Twice the same is not asked for: each point asks."""
        counts = {resource: Count(0) for resource in ("pods", "pytorchjobs", "services")}
        rules = [
            Rule(requests("watch", resource), count, times=ALWAYS)
            for resource, count in counts.items()
        ]
        async with Run(self, scenario, lambda operator: rules) as run:
            try:
                await run.script()
                await run.quiet()
                failure = await run.end()
            except Stuck as error:
                failure = [str(error)]
            if failure:
                raise RuntimeError(run.report(f"{scenario.name} without faults", failure))
            size = Size(
                len(run.proxy.writes), {name: count.events for name, count in counts.items()}
            )
            return Reference(
                outcome(run.world, scenario, Tolerance()), size, [str(w) for w in run.proxy.writes]
            )

    async def point(self, point, reference):
        """Runs at one point; None, or what went wrong as text."""
        scenario = SCENARIOS[point.scenario]
        async with Run(self, scenario, point.rules) as run:
            try:
                await run.script()
                failure = await run.comes_to(reference.outcome, point.tolerance)
                failure = failure or await run.end()
            except (RuntimeError, OSError) as error:
                failure = [f"{type(error).__name__}: {error}"]
            return run.report(point.name, failure) if failure else None

    def next_name(self, scenario):
        self._runs += 1
        return f"{scenario.name}-{self._id}-{self._runs}"


class Run:
    """One namespace, one operator, one proxy between it and the API server."""

    def __init__(self, ring, scenario, rules):
        self._ring = ring
        self._scenario = scenario
        self._rules = rules
        self._begun = time.monotonic()

    async def __aenter__(self):
        ring = self._ring
        name = ring.next_name(self._scenario)
        self.world = await ring._cluster.world(name)
        self.kubelet = Kubelet(self.world)
        self._kubelet_task = asyncio.create_task(self.kubelet.run())
        self.proxy = await Proxy(ring._upstream, ring._certificates, name).start()
        kubeconfig = ring._folder / f"{name}.kubeconfig"
        kubeconfig.write_text(self.proxy.kubeconfig())
        self.operator = Operator(
            kubeconfig, name, ring._folder / f"{name}.log", self.world.fail, ring._flags
        )
        self.proxy.rules = self._rules(self.operator)
        await self.operator.start()
        self._files = [kubeconfig, self.operator.log]
        self._kept = False
        return self

    async def __aexit__(self, *error):
        self._kubelet_task.cancel()
        await asyncio.gather(self._kubelet_task, return_exceptions=True)
        await self.operator.stop()
        await self.proxy.close()
        self._ring._cluster.forget(self.world)
        if not self._kept:
            for file in self._files:
                file.unlink(missing_ok=True)

    async def script(self):
        await self._scenario.script(self.world, self.kubelet)

    async def quiet(self):
        """Waits until nothing has happened for a while."""
        while True:
            try:
                async with asyncio.timeout(QUIET):
                    await self.world.change()
            except TimeoutError:
                return

    async def comes_to(self, expected, tolerance):
        """Waits until the run has come to what is expected and stays there; else what differs."""
        world = self.world

        def differ():
            found = outcome(world, self._scenario, tolerance)
            return differences(expected, found, tolerance)

        if tolerance.refusals:
            expected = without_refusals(expected)
        deadline = time.monotonic() + RESULT_PATIENCE
        while True:
            if world.failure:
                return [f"{type(world.failure).__name__}: {world.failure}"]
            left = deadline - time.monotonic()
            if not differ():
                await asyncio.sleep(SETTLE)
                if not differ():
                    return []
            elif left <= 0:
                return differ()
            else:
                try:
                    async with asyncio.timeout(min(left, 1)):
                        await world.change()
                except TimeoutError:
                    pass

    async def end(self):
        """SIGTERM, and what must hold of every run."""
        status = await self.operator.stop()
        failure = invariant_broken(self.world)
        if status != 0:
            failure.append(f"exit status after SIGTERM: {status}")
        if self.proxy.trouble:
            failure.append(f"trouble of the proxy's own: {self.proxy.trouble}")
        return failure

    def report(self, name, failure):
        """For humans; keeps the operator's log."""
        self._kept = True
        record = [str(request) for request in self.proxy.record if request.verb != "get"]
        return "\n  ".join(
            [
                f"{name}: {time.monotonic() - self._begun:.1f} s, "
                f"{self.operator.restarts} restarts, log {self.operator.log}",
                *failure,
                "requests:",
                *("  " + line for line in record[-60:]),
            ]
        )


def without_refusals(expected):
    """What is expected where a refusal may or may not have been told."""
    from .outcome import REFUSALS

    jobs = {}
    for name, job in expected["jobs"].items():
        conditions = [c for c in job["conditions"] if c[0] not in REFUSALS]
        jobs[name] = {**job, "conditions": conditions}
    events = {e: n for e, n in expected["events"].items() if e.split(":")[0] not in REFUSALS}
    return {**expected, "jobs": jobs, "events": events}
