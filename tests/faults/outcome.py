"""What a run came to, without what differs from run to run: times, uids, the namespace's name."""

import collections
import dataclasses
import json

REFUSALS = ("ReplicaFailure", "FailedCreatePod", "FailedCreateService")


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """What a fault may change rightly."""

    # An event is told after the write that it is about: a crash in between loses it.
    events_lost: bool = False
    # A create that the server refused again and again is told in the status.
    refusals: bool = False


def job_outcome(job, scenario, tolerance):
    status = job.get("status", {})
    refusals = tolerance.refusals or scenario.racing
    conditions = [
        [c["type"], c["status"], c["reason"]]
        for c in status.get("conditions", [])
        if not (scenario.loose and c["status"] == "False")
        and not (refusals and c["type"] in REFUSALS)
    ]
    failure = status.get("lastFailure", {})
    return {
        "conditions": conditions,
        "replicaStatuses": status.get("replicaStatuses"),
        "summary": status.get("summary"),
        "restartCount": status.get("restartCount", 0),
        "attempt": status.get("attempt", 0),
        "accounted": len(status.get("accountedPods", [])),
        "waiting": status.get("waiting"),
        "lastFailure": [failure.get(key) for key in ("pod", "index", "exitCode", "reason")],
        "times": [key for key in ("startTime", "completionTime") if key in status],
        "observed": status.get("observedGeneration") == job["metadata"]["generation"],
    }


def event_counts(world, scenario, tolerance):
    """(reason, message) -> how often it was told."""
    counts = collections.Counter()
    for event in world.objects["events"].values():
        if (tolerance.refusals or scenario.racing) and event["reason"] in REFUSALS:
            continue
        message = event.get("message", "").replace(world.namespace, "NAMESPACE")
        if scenario.racing:
            counts[event["reason"]] = 1
        else:
            counts[f"{event['reason']}: {message}"] += event.get("count", 1)
    return dict(counts)


def outcome(world, scenario, tolerance):
    """Everything that must be equal, as JSON."""
    numbers = {}
    for title, uids in (("made", world.made), ("gone", world.gone)):
        numbers[title] = {
            f"{resource}/{name}": len(of_name)
            for (resource, name), of_name in sorted(uids.items())
            if resource != "events" and (resource == "pytorchjobs" or not scenario.racing)
        }
    if scenario.racing:
        pods = [len(uids) for (resource, _), uids in world.made.items() if resource == "pods"]
        numbers["most of one name"] = max(pods)
    return {
        "jobs": {
            name: job_outcome(job, scenario, tolerance)
            for name, job in world.objects["pytorchjobs"].items()
        },
        "pods": {name: pod["status"]["phase"] for name, pod in sorted(world.objects["pods"].items())},
        "services": sorted(world.objects["services"]),
        **numbers,
        "events": event_counts(world, scenario, tolerance),
    }


def differ(path, expected, got):
    """A line for each leaf that differs."""
    if expected == got:
        return
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in [*expected, *(key for key in got if key not in expected)]:
            yield from differ(f"{path}.{key}", expected.get(key), got.get(key))
    else:
        yield f"{path}: expected {json.dumps(expected)}, found {json.dumps(got)}"


def differences(expected, got, tolerance):
    """Lines that say what differs; none when the run came to the same."""
    lines = [
        line for part in expected if part != "events" for line in differ(part, expected[part], got[part])
    ]
    for event in sorted(expected["events"].keys() | got["events"].keys()):
        wanted, told = expected["events"].get(event, 0), got["events"].get(event, 0)
        if told > wanted or (told < wanted and not tolerance.events_lost):
            lines.append(f"event {event!r}: expected {wanted}, told {told}")
    return lines


def invariant_broken(world):
    """What must hold in every state of every run; a line for each breach."""
    lines = []
    ended = None
    for status in world.statuses:
        types = [c["type"] for c in status.get("conditions", []) if c["status"] == "True"]
        exclusive = [t for t in types if t not in ("Created", "ReplicaFailure")]
        if len(exclusive) > 1:
            lines.append(f"conditions at the same time: {exclusive}")
        if ended and ended not in types and len(world.made["pytorchjobs", "job"]) == 1:
            lines.append(f"{ended} was taken back: {types}")
        ended = next((t for t in exclusive if t in ("Succeeded", "Failed")), ended)
    return lines


__all__ = ["Tolerance", "differences", "invariant_broken", "outcome"]
