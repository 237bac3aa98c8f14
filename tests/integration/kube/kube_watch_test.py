"""Lists and watches that survive what happens to API servers and networks."""

import json
import os
import pathlib
import signal
import uuid

import pytest

from probe_rig import Probe, ask

MAPS = "configmaps"


@pytest.fixture
def space(plane):
    """A namespace of its own."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    line = ask(plane.admin, "create", "namespaces", "", json.dumps({"metadata": {"name": name}}))
    assert "reply" in line, line
    return name


def create(plane, space, name, payload=""):
    body = {"metadata": {"name": name}, "data": {"x": payload}}
    line = ask(plane.admin, "create", MAPS, space, json.dumps(body))
    assert "reply" in line, line
    return line["reply"]["metadata"]


def applied(kind, name):
    return lambda line: line.get("apply") == kind and line["object"]["name"] == name


def replaced(line):
    return "replace" in line


def trouble(line):
    return bool(line.get("trouble"))


def back(line):
    return line.get("trouble") == ""


def test_verbs(plane, space):
    created = create(plane, space, "a")
    twice = ask(plane.admin, "create", MAPS, space, '{"metadata":{"name":"a"}}')
    assert twice["error"] == "AlreadyExists"
    patched = ask(plane.admin, "patch", MAPS, space, "a", "", '{"data":{"y":"ü"}}')
    assert patched["reply"]["data"] == {"x": "", "y": "ü"}
    stale = {"metadata": {"resourceVersion": created["resourceVersion"]}, "data": {"z": "1"}}
    conflict = ask(plane.admin, "patch", MAPS, space, "a", "", json.dumps(stale))
    assert conflict["error"] == "Conflict"
    invalid = ask(plane.admin, "create", MAPS, space, '{"metadata":{"name":"Not Valid"}}')
    assert invalid["error"] == "Invalid" and "Not Valid" in invalid["message"]
    assert ask(plane.admin, "delete", MAPS, space, "a", "another-uid")["error"] == "Conflict"
    assert "reply" in ask(plane.admin, "delete", MAPS, space, "a", created["uid"])
    assert ask(plane.admin, "delete", MAPS, space, "a", "")["error"] == "NotFound"
    gone = ask(plane.admin, "get", "widgets.v1.example.com", space, "a")
    assert gone["error"] == "NotFound"


def test_follows_changes_and_stops_at_once(plane, space):
    create(plane, space, "before")
    with Probe(plane.admin, "reflect", MAPS, space) as probe:
        assert probe.next("the list", replaced)["replace"] == ["before"]
        create(plane, space, "a")
        probe.next("the new object", applied("ADDED", "a"))
        ask(plane.admin, "patch", MAPS, space, "a", "", '{"data":{"y":"1"}}')
        changed = probe.next("the change", applied("MODIFIED", "a"))
        ask(plane.admin, "delete", MAPS, space, "a", "")
        probe.next("the deletion", applied("DELETED", "a"))
        progress = [line["progress"] for line in probe.seen if "progress" in line]
        assert changed["object"]["resourceVersion"] in progress
        assert not any("trouble" in line for line in probe.stop())


def test_a_megabyte_object_comes_whole(plane, space):
    # In pieces, since an argument of a program may have 128 KiB.
    payload = "\\\"}{]\n" * 7500
    with Probe(plane.admin, "reflect", MAPS, space) as probe:
        probe.next("the list", replaced)
        create(plane, space, "big", payload)
        for i in range(17):
            patch = json.dumps({"data": {f"k{i}": payload}})
            line = ask(plane.admin, "patch", MAPS, space, "big", "", patch)
            assert "reply" in line, line
        big = probe.next("the whole object", lambda line: "object" in line
                         and line["object"]["bytes"] > 1_000_000)  # fmt: skip
        assert big["object"]["name"] == "big"


def test_more_objects_than_a_page(plane, space):
    names = [f"m{i:04}" for i in range(3)]
    for name in names:
        create(plane, space, name)
    page = ask(plane.admin, "list", MAPS, space, "2")["reply"]
    assert len(page["items"]) == 2 and page["metadata"]["continue"]


def test_waits_for_a_resource_that_is_not_there_yet(plane, space):
    group = f"g{uuid.uuid4().hex[:8]}.example.com"
    definition = {
        "metadata": {"name": f"widgets.{group}"},
        "spec": {"group": group, "scope": "Namespaced",
                 "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
                 "versions": [{"name": "v1", "served": True, "storage": True,
                               "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    }  # fmt: skip
    with Probe(plane.admin, "reflect", f"widgets.v1.{group}", space) as probe:
        why = probe.next("the complaint", trouble)["trouble"]
        assert group in why and "CustomResourceDefinition" in why
        made = ask(plane.admin, "create", "customresourcedefinitions.v1.apiextensions.k8s.io", "",
                   json.dumps(definition))  # fmt: skip
        assert "reply" in made, made
        assert probe.next("the list", replaced)["replace"] == []
        probe.next("all well", back)
        widget = {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w"}}
        assert "reply" in ask(plane.admin, "create", f"widgets.v1.{group}", space, json.dumps(widget))
        probe.next("the object", applied("ADDED", "w"))
        assert "reply" in ask(plane.admin, "delete", f"widgets.v1.{group}", space, "w", "")
        probe.next("its deletion", applied("DELETED", "w"))
        assert sum(trouble(line) for line in probe.stop()) == 1, "said once"


def test_survives_restarts_of_the_api_server(plane, space):
    with Probe(plane.admin, "reflect", MAPS, space) as probe:
        probe.next("the list", replaced)
        for round_ in range(3):
            plane.kill_server()
            probe.next("the loss", trouble)
            plane.up()
            probe.next("the return", back)
            create(plane, space, f"r{round_}")
            # By the resumed watch or by a list: either way it comes.
            probe.next("what came after", lambda line, name=f"r{round_}": applied("ADDED", name)(line)
                       or name in line.get("replace", []))  # fmt: skip


def test_lists_again_when_its_version_is_gone(plane, space):
    with Probe(plane.admin, "reflect", MAPS, space) as probe:
        probe.next("the list", replaced)
        create(plane, space, "a")
        version = int(probe.next("the object", applied("ADDED", "a"))["object"]["resourceVersion"])
        # Versions go on, but nothing of it is for this watch; then etcd forgets the old ones, and the
        # API server its cache.
        for _ in range(3):
            create(plane, "default", f"elsewhere-{uuid.uuid4().hex[:8]}")
        assert plane.compact() > version
        plane.kill_server()
        probe.next("the loss", trouble)
        plane.up()
        assert probe.next("a list", replaced)["replace"] == ["a"]
        create(plane, space, "b")
        probe.next("going on", applied("ADDED", "b"))
        complaints = [line for line in probe.stop() if trouble(line)]
        assert len(complaints) == 1, "an expired version is no trouble of its own"


def test_an_expired_version_is_said_so(plane, space):
    # By the API server's choice as a status or inside of a 200.
    with Probe(plane.admin, "watch", MAPS, space, "1", "5") as probe:
        line = probe.next("410", lambda line: "error" in line or line.get("block"))
        assert line.get("error") == "Gone" or '"code":410' in line["text"], line


def version_now(plane, space):
    return ask(plane.admin, "list", MAPS, space)["reply"]["metadata"]["resourceVersion"]


def threads_and_files(probe):
    process = pathlib.Path(f"/proc/{probe.process.pid}")
    return len(os.listdir(process / "task")), len(os.listdir(process / "fd"))


def test_a_quiet_watch_is_left_alone(plane, space):
    # cpprestsdk's own timer would end it after 30 s. 45 s is before the first bookmark.
    with Probe(plane.admin, "watch", MAPS, space, version_now(plane, space), "45") as probe:
        probe.next("the watch being open", lambda line: "block" in line)
        ended = probe.next("its end by the server", lambda line: "ended" in line or "error" in line,
                           patience=120)  # fmt: skip
        assert ended == {"ended": True}
        assert [line for line in probe.seen if "block" in line] == [{"block": 0, "text": ""}]


def test_a_silent_server_is_noticed(plane, space):
    # Stopped, its kernel still answers for it: only the silence tells. 30 s beyond its own end.
    with Probe(plane.admin, "watch", MAPS, space, version_now(plane, space), "1") as probe:
        pid = plane.server_pid()
        probe.next("the watch being open", lambda line: "block" in line)
        os.kill(pid, signal.SIGSTOP)
        try:
            line = probe.next("the timeout", lambda line: "error" in line, patience=120)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert line["error"] == "Timeout", line


def test_idle_costs(plane, space):
    with Probe(plane.admin, "reflect", MAPS, space) as probe:
        probe.next("the list", replaced)
        before = threads_and_files(probe)
        for i in range(20):
            create(plane, space, f"n{i}")
            probe.next("an event", applied("ADDED", f"n{i}"))
        assert threads_and_files(probe) == before, "threads and files stay constant"
        assert before[0] <= 8, "4 threads of the library, its resolver's, main, signals, the watch"
