"""What really exists, seen past the proxy: one watch of the whole cluster, a World a namespace."""

import asyncio
import collections
import contextlib
import json

from faultproxy.proxy import split

PATIENCE = 90  # seconds until a scenario that makes no progress is given up
RESOURCES = {
    "pods": "/api/v1/pods",
    "services": "/api/v1/services",
    "events": "/api/v1/events",
    "pytorchjobs": "/apis/kubeflow.org/v1/pytorchjobs",
}


class Stuck(RuntimeError):
    """A scenario waited in vain."""


def is_true(job, condition):
    return any(
        c["type"] == condition and c["status"] == "True"
        for c in job.get("status", {}).get("conditions", [])
    )


class World:
    """One namespace: its objects, and how often each name was made and went. Not thread-safe."""

    def __init__(self, api, namespace):
        self.api = api
        self.namespace = namespace
        self.objects = collections.defaultdict(dict)  # resource -> name -> object
        self.made = collections.defaultdict(list)  # (resource, name) -> uids in order
        self.gone = collections.defaultdict(list)  # likewise
        self.statuses = []  # every status of a job that existed, in order
        self.failure = None  # an exception that ends all waiting
        self._changed = asyncio.Event()

    def path(self, resource, name="", subresource=""):
        root = RESOURCES.get(resource, f"/api/v1/{resource}").rsplit("/", 1)[0]
        parts = [root, "namespaces", self.namespace, resource, name, subresource]
        return "/".join(part for part in parts if part)

    async def create(self, resource, body):
        return await self.api.json("POST", self.path(resource), body)

    async def patch(self, resource, name, body, subresource=""):
        return await self.api.patch(self.path(resource, name, subresource), body)

    async def delete(self, resource, name, **options):
        body = {"propagationPolicy": "Background", **options}
        return await self.api.json("DELETE", self.path(resource, name), body)

    def apply(self, resource, kind, item):
        """Takes in one event of the cluster's watch."""
        meta = item["metadata"]
        key = (resource, meta["name"])
        if kind == "DELETED":
            self.objects[resource].pop(meta["name"], None)
            self.gone[key].append(meta["uid"])
        else:
            self.objects[resource][meta["name"]] = item
            if meta["uid"] not in self.made[key]:
                self.made[key].append(meta["uid"])
            if resource == "pytorchjobs" and "status" in item:
                self.statuses.append(item["status"])
        self.notify()

    def notify(self):
        self._changed.set()
        self._changed = asyncio.Event()

    def fail(self, error):
        self.failure = self.failure or error
        self.notify()

    async def change(self):
        await self._changed.wait()

    async def until(self, holds, what):
        """Waits until `holds()`."""
        try:
            async with asyncio.timeout(PATIENCE):
                while not (self.failure or holds()):
                    await self.change()
        except TimeoutError:
            raise Stuck(f"waited in vain for: {what}") from None
        if self.failure:
            raise self.failure

    async def job_until(self, holds, what, name="job"):
        """Waits until the job exists and `holds(job)`."""
        jobs = self.objects["pytorchjobs"]
        await self.until(lambda: name in jobs and holds(jobs[name]), what)

    async def condition(self, condition, name="job"):
        await self.job_until(lambda job: is_true(job, condition), f"condition {condition}", name)

    async def running(self, summary):
        """Waits until the job's status says that so many run, of so many."""
        await self.job_until(
            lambda job: is_true(job, "Running") and job["status"].get("summary") == summary,
            f"{summary} running",
        )

    def incarnation(self, pod):
        """1 for the first pod of its name."""
        return self.made["pods", pod["metadata"]["name"]].index(pod["metadata"]["uid"]) + 1


class Cluster:
    """Watches everything and keeps the worlds up to date. Started before the first world is made,
    on an API server without jobs."""

    def __init__(self, api):
        self.api = api
        self.worlds = {}
        self._tasks = []

    async def start(self):
        for resource, path in RESOURCES.items():
            listed = await self.api.json("GET", f"{path}?limit=1")
            follow = self._follow(resource, path, listed["metadata"]["resourceVersion"])
            self._tasks.append(asyncio.create_task(follow))

    async def world(self, namespace):
        await self.api.json("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        self.worlds[namespace] = World(self.api, namespace)
        return self.worlds[namespace]

    def forget(self, world):
        del self.worlds[world.namespace]

    async def _follow(self, resource, path, version):
        try:
            while True:
                target = f"{path}?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
                with contextlib.suppress(ConnectionError):
                    async with self.api.stream(target) as stream:
                        async for line in split(stream.blocks()):
                            version = self._take(resource, json.loads(line))
        except Exception as error:  # nothing seen from here on could be trusted
            for world in self.worlds.values():
                world.fail(error)
            raise

    def _take(self, resource, event):
        item = event["object"]
        if event["type"] == "ERROR":
            raise RuntimeError(f"the test's own watch of {resource} ended: {item}")
        world = self.worlds.get(item["metadata"].get("namespace"))
        if world and event["type"] != "BOOKMARK":
            world.apply(resource, event["type"], item)
        return item["metadata"]["resourceVersion"]

    async def stop(self):
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
