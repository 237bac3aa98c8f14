"""The proxy against a real API server and the Python client: each fault looks as it should."""

import asyncio
import contextlib
import json
import os
import pathlib
import threading

import kubernetes
import pytest
import urllib3

import faultproxy
from faultproxy import (
    Answer, Cut, CutWatch, Drop, ExpireWatch, HoldBack, Insert, Interrupt, Merge, OlderList, Rule,
    Silence, Slow, requests, writes,
)  # fmt: skip

KUBECTL = pathlib.Path(
    os.environ.get("PTO_CACHE", pathlib.Path.home() / ".cache" / "pytorch-operator"), "bin", "kubectl"
)
BROKEN = (urllib3.exceptions.HTTPError, OSError)


class Bench:
    """A proxy, a client behind it, and the API server itself as `direct`."""

    def __init__(self, proxy, direct, file):
        self.proxy = proxy
        self.direct = direct
        self.file = file
        configuration = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(str(file), client_configuration=configuration)
        configuration.retries = False
        self.core = kubernetes.client.CoreV1Api(kubernetes.client.ApiClient(configuration))

    async def create(self, name, **labels):
        body = {"metadata": {"name": name, "labels": labels}}
        return await asyncio.to_thread(self.core.create_namespaced_config_map, "default", body)

    async def names(self):
        listed = await self.direct.json("GET", "/api/v1/namespaces/default/configmaps")
        return {item["metadata"]["name"] for item in listed["items"]}

    async def change(self, name, value):
        path = f"/api/v1/namespaces/default/configmaps/{name}"
        await self.direct.patch(path, {"data": {"value": value}})

    async def make(self, name):
        path = "/api/v1/namespaces/default/configmaps"
        await self.direct.json("POST", path, {"metadata": {"name": name}})

    async def remove(self, *names):
        for name in names:
            await self.direct.json("DELETE", f"/api/v1/namespaces/default/configmaps/{name}")

    @contextlib.asynccontextmanager
    async def watch(self):
        """Raw lines of a watch from now on, as they come; None at its end."""
        listed = await self.direct.json("GET", "/api/v1/namespaces/default/configmaps")
        version = listed["metadata"]["resourceVersion"]
        lines = asyncio.Queue()
        loop = asyncio.get_running_loop()
        stop = threading.Event()

        def read():
            with contextlib.suppress(*BROKEN):
                response = self.core.list_namespaced_config_map(
                    "default", watch=True, resource_version=version, _preload_content=False,
                    _request_timeout=20,
                )  # fmt: skip
                rest = b""
                for block in response.stream(1 << 16):
                    *whole, rest = (rest + block).split(b"\n")
                    for line in whole:
                        loop.call_soon_threadsafe(lines.put_nowait, line)
                    if stop.is_set():
                        return
                loop.call_soon_threadsafe(lines.put_nowait, None)
                return
            loop.call_soon_threadsafe(lines.put_nowait, "broken")

        task = asyncio.create_task(asyncio.to_thread(read))
        while not any(request.verb == "watch" and request.told for request in self.proxy.record):
            await asyncio.sleep(0.01)
        try:
            yield lines
        finally:
            stop.set()
            self.proxy.cut_all()
            await task


def run(kubeconfig, certificates, tmp_path, scenario, *rules):
    """Runs an async test with a proxy that has these rules."""

    async def main():
        direct = faultproxy.Upstream(kubeconfig)
        proxy = await faultproxy.Proxy(direct, certificates, "tester").start()
        proxy.rules = list(rules)
        file = tmp_path / "kubeconfig"
        file.write_text(proxy.kubeconfig())
        try:
            await asyncio.wait_for(scenario(Bench(proxy, direct, file)), 30)
        finally:
            await proxy.close()
            direct.close()
        assert proxy.trouble == []

    asyncio.run(main())


@pytest.fixture
def through(kubeconfig, certificates, tmp_path):
    return lambda scenario, *rules: run(kubeconfig, certificates, tmp_path, scenario, *rules)


def text(line):
    event = json.loads(line)
    return event["type"], event["object"]["metadata"].get("name"), event["object"].get("data")


def test_kubectl_works_through_it_and_everything_is_recorded(through):
    async def scenario(bench):
        kubectl = await asyncio.create_subprocess_exec(
            KUBECTL, "--kubeconfig", bench.file, "create", "configmap", "by-kubectl"
        )
        assert await kubectl.wait() == 0
        assert "by-kubectl" in await bench.names()
        (write,) = bench.proxy.writes
        assert (write.write, write.verb, write.resource) == (1, "create", "configmaps")
        assert (write.namespace, write.status, write.told) == ("default", 201, 201)
        assert b"by-kubectl" in write.body  # kubectl speaks protobuf
        await bench.remove("by-kubectl")

    through(scenario)


def test_a_client_without_the_token_is_refused(through):
    async def scenario(bench):
        bench.core.api_client.configuration.api_key.clear()
        with pytest.raises(kubernetes.client.ApiException) as refused:
            await bench.create("without-token")
        assert refused.value.status == 401
        assert "without-token" not in await bench.names()

    through(scenario)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", ["cut", "interrupt"])
def test_a_connection_breaks_before_or_after_the_server_has_answered(through, kind, after):
    calls = []
    fault = Cut(after) if kind == "cut" else Interrupt(lambda: calls.append(1), after)

    async def scenario(bench):
        await bench.create("first")
        with pytest.raises(BROKEN):
            await bench.create("second")
        assert ("second" in await bench.names()) == after
        assert [request.told for request in bench.proxy.writes] == [201, 0]
        assert len(calls) == (kind == "interrupt")
        await bench.create("third")
        await bench.remove("first", "third", *(["second"] if after else []))

    through(scenario, Rule(writes(), fault, at=2))


@pytest.mark.parametrize("status", [410, 429, 500, 503])
def test_an_answer_in_the_servers_place(through, status):
    async def scenario(bench):
        with pytest.raises(kubernetes.client.ApiException) as refused:
            await bench.create("refused")
        assert refused.value.status == status
        assert refused.value.headers["retry-after"] == "7"
        assert json.loads(refused.value.body)["code"] == status
        assert "refused" not in await bench.names()

    through(scenario, Rule(writes(), Answer(status, retry_after=7)))


def test_a_storm_lasts_for_its_time(through):
    async def scenario(bench):
        refused = 0
        while True:
            try:
                await bench.create("storm")
                break
            except kubernetes.client.ApiException as error:
                assert error.status == 503
                refused += 1
        assert refused > 1
        await bench.remove("storm")

    through(scenario, Rule(writes(), Answer(503), seconds=0.5))


def test_slow_and_silent(through):
    silence = Silence()

    async def scenario(bench):
        waiting = asyncio.create_task(bench.create("slow"))
        while not bench.proxy.writes:
            await asyncio.sleep(0.01)
        assert "slow" not in await bench.names()
        await waiting
        waiting = asyncio.create_task(bench.create("silent"))
        while len(bench.proxy.writes) < 2 or not bench.proxy.writes[1].status:
            await asyncio.sleep(0.01)
        assert "silent" in await bench.names()
        assert not waiting.done()
        silence.released.set()
        with pytest.raises(BROKEN):
            await waiting
        await bench.remove("slow", "silent")

    silent = Silence(after=True)
    silence = silent
    through(scenario, Rule(writes(), Slow(0.5)), Rule(writes(), silent))


def test_a_partition_and_its_end(through):
    async def scenario(bench):
        bench.proxy.silence()
        waiting = asyncio.create_task(bench.create("late"))
        await asyncio.sleep(0.3)
        assert not waiting.done() and "late" not in await bench.names()
        bench.proxy.speak()
        await waiting
        await bench.remove("late")

    through(scenario)


def test_what_was_given_up_during_a_partition_never_arrives(through):
    async def scenario(bench):
        bench.proxy.silence()
        with pytest.raises(BROKEN):
            body = {"metadata": {"name": "given-up"}}
            await asyncio.to_thread(
                bench.core.create_namespaced_config_map, "default", body, _request_timeout=1
            )
        bench.proxy.speak()
        await bench.create("afterwards")
        assert "given-up" not in await bench.names()
        await bench.remove("afterwards")

    through(scenario)


def test_an_older_list(through):
    async def scenario(bench):
        def listed():
            items = bench.core.list_namespaced_config_map("default").items
            return {item.metadata.name for item in items}

        before = await asyncio.to_thread(listed)
        await bench.make("newer")
        assert await asyncio.to_thread(listed) == before
        assert await asyncio.to_thread(listed) == before | {"newer"}
        await bench.remove("newer")

    through(scenario, Rule(requests("list", "configmaps"), OlderList(), at=2))


def watched(fault):
    return Rule(requests("watch", "configmaps"), fault, times=100)


def test_a_watch_is_relayed(through):
    async def scenario(bench):
        async with bench.watch() as lines:
            await bench.make("seen")
            await bench.remove("seen")
            assert [text(await lines.get())[:2] for _ in range(2)] == [
                ("ADDED", "seen"),
                ("DELETED", "seen"),
            ]

    through(scenario)


@pytest.mark.parametrize("fault", [HoldBack(2, 0.5), Merge(2, 0.5)])
def test_events_are_held_back_or_merged(through, fault):
    async def scenario(bench):
        async with bench.watch() as lines:
            await bench.make("held")
            assert text(await lines.get())[0] == "ADDED"
            for value in "abc":
                await bench.change("held", value)
            assert lines.empty()
            expected = ["c"] if isinstance(fault, Merge) else ["a", "b", "c"]
            got = [text(await lines.get())[2]["value"] for _ in expected]
            assert got == expected
            await bench.change("held", "d")
            assert text(await lines.get())[2] == {"value": "d"}
            await bench.remove("held")

    through(scenario, watched(fault))


def test_dropped_events_end_in_410(through):
    async def scenario(bench):
        async with bench.watch() as lines:
            await bench.make("dropped")
            for value in "abc":
                await bench.change("dropped", value)
            assert text(await lines.get())[0] == "ADDED"
            assert text(await lines.get())[2] == {"value": "b"}
            last = json.loads(await lines.get())
            assert (last["type"], last["object"]["code"]) == ("ERROR", 410)
            assert await lines.get() is None
            await bench.remove("dropped")

    through(scenario, watched(Drop(2, lambda number: number != 3, 0.5)))


@pytest.mark.parametrize("line", [b"garbage", b'{"' + b"x" * 5_000_000])
def test_lines_that_are_none(through, line):
    async def scenario(bench):
        async with bench.watch() as lines:
            await bench.make("garbage")
            await bench.change("garbage", "a")
            assert text(await lines.get())[0] == "ADDED"
            assert await lines.get() == line
            assert text(await lines.get())[2] == {"value": "a"}
            await bench.remove("garbage")

    through(scenario, watched(Insert(2, line)))


@pytest.mark.parametrize("fault", [ExpireWatch(2), CutWatch(2)])
def test_a_watch_ends_early(through, fault):
    async def scenario(bench):
        async with bench.watch() as lines:
            await bench.make("ended")
            await bench.change("ended", "a")
            assert text(await lines.get())[0] == "ADDED"
            if isinstance(fault, CutWatch):
                assert await lines.get() == "broken"
            else:
                assert json.loads(await lines.get())["object"]["code"] == 410
                assert await lines.get() is None
            await bench.remove("ended")

    through(scenario, watched(fault))
