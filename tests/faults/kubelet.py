"""Scheduler, kubelet and garbage collector of one namespace, as a script: what happens to a pod
depends on its name and on which pod of that name it is, and on nothing else."""

import asyncio
import datetime

from faultproxy.upstream import StatusError


def now():
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Kubelet:
    """Pods are bound and run as soon as they exist, unless their name is in `held`; they end when
    `exits` has a code for (name, incarnation); terminating ones go at once, unless their name is
    in `lingering`."""

    def __init__(self, world):
        self.world = world
        self.held = set()
        self.lingering = set()
        self.exits = {}
        self._asked = set()  # (uid, action): done or under way

    async def run(self):
        try:
            while True:
                self._look()
                await self.world.change()
        except Exception as error:
            self.world.fail(error)
            raise

    def exit(self, code, *names, incarnation=1):
        """These pods end with this code, now or as soon as they run."""
        for name in names:
            self.exits[name, incarnation] = code
        self.world.notify()

    def release(self):
        """Nothing is held and nothing lingers any more."""
        self.held.clear()
        self.lingering.clear()
        self.world.notify()

    def _look(self):
        world = self.world
        gone_jobs = {uid for (r, _), uids in world.gone.items() if r == "pytorchjobs" for uid in uids}
        for resource in ("pods", "services"):
            for item in world.objects[resource].values():
                owners = item["metadata"].get("ownerReferences", [])
                if owners and all(owner["uid"] in gone_jobs for owner in owners):
                    self._once(item, "collect", self._collect(resource, item))
        for pod in list(world.objects["pods"].values()):
            self._look_at(pod)

    def _look_at(self, pod):
        meta, phase = pod["metadata"], pod["status"].get("phase", "Pending")
        if "deletionTimestamp" in meta:
            if meta["name"] not in self.lingering:
                self._once(pod, "remove", self._remove(pod))
        elif meta["name"] in self.held:
            return
        elif "nodeName" not in pod["spec"]:
            self._once(pod, "bind", self._bind(pod))
        elif phase == "Pending":
            self._once(pod, "run", self._report(pod, "Running", {"running": {"startedAt": now()}}))
        elif phase == "Running":
            code = self.exits.get((meta["name"], self.world.incarnation(pod)))
            if code is not None:
                end = {"exitCode": code, "reason": "Completed" if code == 0 else "Error",
                       "startedAt": now(), "finishedAt": now()}  # fmt: skip
                phase = "Succeeded" if code == 0 else "Failed"
                self._once(pod, "exit", self._report(pod, phase, {"terminated": end}))

    def _once(self, item, action, work):
        key = (item["metadata"]["uid"], action)
        if key in self._asked:
            work.close()
            return
        self._asked.add(key)
        task = asyncio.ensure_future(self._do(work))
        self._asked.add(task)  # a reference, or it may be collected
        task.add_done_callback(self._asked.discard)

    async def _do(self, work):
        try:
            await work
        except StatusError as error:
            if error.status not in (404, 409):  # it went meanwhile
                self.world.fail(error)
        except Exception as error:
            self.world.fail(error)

    async def _bind(self, pod):
        name = pod["metadata"]["name"]
        target = {"apiVersion": "v1", "kind": "Node", "name": "node"}
        body = {"metadata": {"name": name, "uid": pod["metadata"]["uid"]}, "target": target}
        path = self.world.path("pods", name, "binding")
        await self.world.api.json("POST", path, body)

    async def _report(self, pod, phase, state):
        ready = "True" if phase == "Running" else "False"
        containers = [
            {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0,
             "ready": phase == "Running", "state": state}
            for container in pod["spec"]["containers"]
        ]  # fmt: skip
        status = {
            "phase": phase,
            "containerStatuses": containers,
            "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": now()}],
            "startTime": pod["status"].get("startTime", now()),
        }
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self.world.patch("pods", pod["metadata"]["name"], body, "status")

    async def _remove(self, pod):
        uid = pod["metadata"]["uid"]
        await self.world.delete(
            "pods", pod["metadata"]["name"], gracePeriodSeconds=0, preconditions={"uid": uid}
        )

    async def _collect(self, resource, item):
        uid = item["metadata"]["uid"]
        await self.world.delete(resource, item["metadata"]["name"], preconditions={"uid": uid})
