"""Two operators with leader election over one namespace, and what happens to the one that leads."""

import asyncio
import dataclasses
import itertools
import pathlib
import secrets
from collections.abc import Callable

from faultproxy import Cut, Proxy, Rule, requests

from .kubelet import Kubelet
from .process import Operator
from .scenarios import job
from .world import is_true

LONGER_THAN_A_LEASE = 22  # seconds
BEFORE = 3  # seconds of ordinary work
PAUSE = 1.5  # between jobs


@dataclasses.dataclass
class Candidate:
    """One of the two."""

    proxy: Proxy
    operator: Operator


async def killed(leader):
    leader.operator.kill(again=False)


async def terminated(leader):
    await leader.operator.stop()


async def paused(leader):
    leader.operator.pause()
    await asyncio.sleep(LONGER_THAN_A_LEASE)
    leader.operator.go_on()


async def partitioned(leader):
    leader.proxy.silence()
    await asyncio.sleep(LONGER_THAN_A_LEASE)
    leader.proxy.speak()


async def cut_off(leader):
    """Its connections break and no new one comes to life."""
    leader.proxy.silence()
    leader.proxy.cut_all()
    await asyncio.sleep(LONGER_THAN_A_LEASE)
    leader.proxy.speak()


async def lease_replies_lost(leader):
    rule = Rule(requests(resource="leases"), Cut(after=True), seconds=LONGER_THAN_A_LEASE)
    leader.proxy.rules = [rule]
    await asyncio.sleep(LONGER_THAN_A_LEASE)


async def lease_requests_lost(leader):
    leader.proxy.rules = [Rule(requests(resource="leases"), Cut(), seconds=LONGER_THAN_A_LEASE)]
    await asyncio.sleep(LONGER_THAN_A_LEASE)


@dataclasses.dataclass
class Case:
    name: str
    happens: Callable
    another_leads: bool = True  # else the same one may go on


CASES = [
    Case("kill -9", killed),
    Case("SIGTERM", terminated),
    Case("SIGSTOP", paused),
    Case("partition", partitioned),
    Case("cut off", cut_off),
    # The server has applied each renewal: nobody else may take over.
    Case("lease replies lost", lease_replies_lost, another_leads=False),
    Case("lease requests lost", lease_requests_lost),
]


class Election:
    """One case. `folder` keeps the logs of a case that failed."""

    def __init__(self, cluster, upstream, certificates, folder, case, number):
        self._cluster = cluster
        self._upstream = upstream
        self._certificates = certificates
        self._folder = pathlib.Path(folder)
        self._case = case
        self._namespace = f"leaders-{secrets.token_hex(2)}-{number}"

    async def run(self):
        """(lines that say what went wrong, seconds until another one wrote or None)."""
        self.world = await self._cluster.world(self._namespace)
        self.kubelet = Kubelet(self.world)
        tasks = [asyncio.create_task(self.kubelet.run()), asyncio.create_task(self._work())]
        self.candidates = [await self._candidate(number) for number in (1, 2)]
        try:
            return await self._judge()
        except (RuntimeError, OSError) as error:
            return [f"{self._case.name}: {type(error).__name__}: {error}"], None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for candidate in self.candidates:
                candidate.proxy.speak()
                candidate.operator.go_on()
                await candidate.operator.stop()
                await candidate.proxy.close()
            self._cluster.forget(self.world)

    async def _candidate(self, number):
        name = f"{self._namespace}-{number}"
        proxy = await Proxy(self._upstream, self._certificates, name).start()
        kubeconfig = self._folder / f"{name}.kubeconfig"
        kubeconfig.write_text(proxy.kubeconfig())
        flags = ("--leader-elect", "--leader-elect-namespace", self._namespace)
        log = self._folder / f"{name}.log"
        operator = Operator(kubeconfig, self._namespace, log, self.world.fail, flags)
        await operator.start()
        return Candidate(proxy, operator)

    async def _work(self):
        """A new job all the time; each ends by itself."""
        self.jobs = 0
        for number in itertools.count():
            body = job(workers=1, cleanPodPolicy="All")
            body["metadata"]["name"] = name = f"job-{number}"
            self.kubelet.exit(0, f"{name}-master-0", f"{name}-worker-0")
            await self.world.create("pytorchjobs", body)
            self.jobs = number + 1
            await asyncio.sleep(PAUSE)

    def _leader(self):
        """Who has last written anything about a job, None before the first write."""
        latest = {}
        for candidate in self.candidates:
            for write in candidate.proxy.writes:
                if write.resource != "leases":
                    latest[write.begun] = candidate
        return latest[max(latest)] if latest else None

    async def _judge(self):
        world, case = self.world, self._case
        await world.until(lambda: self._leader() is not None, "a leader")
        await asyncio.sleep(BEFORE)
        leader = self._leader()
        other = next(c for c in self.candidates if c is not leader)
        before = len(other.proxy.writes)
        begun = asyncio.get_running_loop().time()
        happening = asyncio.create_task(case.happens(leader))
        takeover = None
        if case.another_leads:
            await world.until(lambda: self._wrote_since(other, before), "another leader")
            takeover = self._wrote_since(other, before).begun - begun
        await happening
        await asyncio.sleep(BEFORE)
        enough = self.jobs
        await world.until(lambda: self._succeeded(enough), f"{enough} jobs succeeded")
        return self._breaches(), takeover

    @staticmethod
    def _wrote_since(candidate, before):
        new = candidate.proxy.writes[before:]
        return next((w for w in new if w.resource != "leases" and w.status), None)

    def _succeeded(self, enough):
        jobs = self.world.objects["pytorchjobs"]
        return all(
            f"job-{n}" in jobs and is_true(jobs[f"job-{n}"], "Succeeded") for n in range(enough)
        )

    def _breaches(self):
        """No write of another than the holder between two acquisitions, in the order of the API
        server's own versions; and no pod was made twice."""
        lines = []
        done = sorted(
            (w for c in self.candidates for w in c.proxy.writes if w.version), key=lambda w: w.version
        )
        holder = None
        for write in done:
            if write.resource == "leases":
                if f'"holderIdentity":""'.encode() not in write.reply.replace(b" ", b""):
                    holder = write.client
            elif write.client != holder:
                lines.append(f"{self._case.name}: {holder} leads, but {write.client} did {write}")
        for (resource, name), uids in self.world.made.items():
            if resource in ("pods", "services") and len(uids) > 1:
                lines.append(f"{self._case.name}: {resource}/{name} was made {len(uids)} times")
        return lines


async def run_leaders(cluster, upstream, certificates, folder):
    """All cases at the same time: (name, failure's text or None) for each."""
    elections = [
        Election(cluster, upstream, certificates, folder, case, number)
        for number, case in enumerate(CASES)
    ]
    results = []
    runs = await asyncio.gather(*(election.run() for election in elections))
    for case, (lines, takeover) in zip(CASES, runs, strict=True):
        told = "the same one goes on" if takeover is None else f"another one after {takeover:.1f} s"
        print(f"leaders: {case.name:<22}{'FAILED' if lines else told}", flush=True)
        results.append((case.name, "\n  ".join([f"leaders/{case.name}", *lines]) if lines else None))
    return results
