"""Where a run is hit: every fault that the ring knows, at every place of a scenario."""

import dataclasses
import random
from collections.abc import Callable

from faultproxy import (
    Answer, Cut, CutWatch, Drop, ExpireWatch, HoldBack, Insert, Interrupt, Merge, OlderList, Rule,
    Silence, Slow, requests, writes,
)  # fmt: skip

from .outcome import Tolerance

STALE = 1.5  # seconds that a watch is behind
STORM = 4
LONG_STORM = 60  # with --full
ALWAYS = 1 << 30
MEGABYTES = b'{"type":"BOOKMARK","object":{"metadata":{"name":"' + b"x" * 5_000_000


@dataclasses.dataclass
class Point:
    """One faulty run of a scenario. `rules(operator)` are the proxy's; `operator` can be killed."""

    scenario: str
    kind: str
    at: int
    rules: Callable
    tolerance: Tolerance = Tolerance()

    @property
    def name(self):
        return f"{self.scenario}/{self.kind}/{self.at}"


@dataclasses.dataclass
class Size:
    """What a run without faults had: how many places there are."""

    writes: int
    events: dict  # watched resource -> number


def write_points(k):
    """Faults at the k-th write."""
    killed = Tolerance(events_lost=True)
    yield "kill-before", lambda o: [Rule(writes(), Interrupt(o.kill), at=k)], killed
    yield "kill-after", lambda o: [Rule(writes(), Interrupt(o.kill, after=True), at=k)], killed
    yield "request-lost", lambda o: [Rule(writes(), Cut(), at=k)], Tolerance()
    yield "reply-lost", lambda o: [Rule(writes(), Cut(after=True), at=k)], Tolerance()
    for status in (429, 500, 503):
        answer = Answer(status, retry_after=1 if status == 429 else None)
        yield f"write-{status}", lambda o, a=answer: [Rule(writes(), a, at=k)], Tolerance()
    yield "late-reply", lambda o: [Rule(writes(), Slow(1, after=True), at=k)], Tolerance()


def silent_points(k):
    """No answer at all to the k-th write, until its deadline has long passed."""
    yield "silent-before", lambda o: [Rule(writes(), Silence(), at=k)], Tolerance()
    yield "silent-after", lambda o: [Rule(writes(), Silence(after=True), at=k)], Tolerance()


def watch_points(resource, k):
    """Faults at the k-th event of a resource's watch."""
    faults = {
        "stale": lambda: HoldBack(k, STALE),
        "merged": lambda: Merge(k, STALE),
        "expired": lambda: ExpireWatch(k),
        "cut": lambda: CutWatch(k),
        "garbage": lambda: Insert(k, b"no event at all"),
    }
    for name, fault in faults.items():
        yield f"{name}-{resource}", lambda o, f=fault: [watched(resource, f())], Tolerance()
    yield f"older-list-{resource}", lambda o: [
        watched(resource, ExpireWatch(k)),
        Rule(requests("list", resource), OlderList(), at=2),
    ], Tolerance()
    yield f"stale-{resource}-and-killed", lambda o: [
        Rule(writes(), Interrupt(o.kill, after=True), at=k + 1),
        watched(resource, HoldBack(k, STALE)),
    ], Tolerance(events_lost=True)  # fmt: skip


def watched(resource, fault):
    return Rule(requests("watch", resource), fault, times=ALWAYS)


def drop_points(seed):
    """Random events never arrive, of one resource or of all."""
    dice = random.Random(seed)
    lost = {number for number in range(1, 200) if dice.random() < 0.5}
    first = dice.randint(1, 6)

    def drop(resource):
        return watched(resource, Drop(first, lost.__contains__, STALE))

    for resource in ("pods", "pytorchjobs"):
        yield f"dropped-{resource}", lambda o, r=resource: [drop(r)], Tolerance()
    yield "dropped-all", lambda o: [
        drop(resource) for resource in ("pods", "pytorchjobs", "services")
    ], Tolerance()


def storm_points(k, seconds):
    """From the k-th request on every one fails, for a while."""
    faults = {
        "429": Answer(429, retry_after=1),
        "500": Answer(500),
        "503": Answer(503),
        "slow": Slow(0.7),
    }
    for name, fault in faults.items():
        yield f"storm-{name}", lambda o, f=fault: [
            Rule(requests(), f, at=k, seconds=seconds)
        ], Tolerance(refusals=True)


def list_points(k):
    """The k-th list fails."""
    for status in (410, 429, 500, 503):
        yield f"list-{status}", lambda o, s=status: [
            Rule(requests("list"), Answer(s, retry_after=1), at=k)
        ], Tolerance()


def other_points():
    """Once each: what is about size and time and not about a place."""
    yield "long-line", lambda o: [watched("pods", Insert(2, MEGABYTES))], Tolerance()
    yield "very-stale-pods", lambda o: [watched("pods", HoldBack(3, 12))], Tolerance()
    yield "very-stale-jobs", lambda o: [watched("pytorchjobs", HoldBack(3, 12))], Tolerance()


def chaos_points(seed):
    """Any of it, again and again, for a while."""

    def rules(operator):
        dice = random.Random(seed)
        faults = [
            Cut(), Cut(after=True), Answer(429, retry_after=1), Answer(500), Answer(503), Slow(0.3),
            Slow(0.3, after=True), Interrupt(operator.kill), Interrupt(operator.kill, after=True),
        ]  # fmt: skip
        chosen = [
            Rule(lambda request: request.verb != "watch", dice.choice(faults), at=dice.randint(2, 60))
            for _ in range(8)
        ]
        stale = dice.choice(["pods", "pytorchjobs"])
        return [*chosen, watched(stale, HoldBack(dice.randint(1, 8), STALE))]

    yield "chaos", rules, Tolerance(events_lost=True, refusals=True)


def thinned(points, share, salt):
    """Every n-th point of a kind, beginning anywhere: a sample that is the same each time."""
    step = max(round(1 / share), 1)
    begin = random.Random(salt).randrange(step)
    return [point for number, point in enumerate(points) if number % step == begin]


def all_points(scenario, size, full):
    """The points of a scenario by what they hit. Bounded: a part of them, unless `full`."""

    def build(generator, places, *arguments):
        kinds = {}
        for at in places:
            for kind, rules, tolerance in generator(*arguments, at):
                kinds.setdefault(kind, []).append(Point(scenario, kind, at, rules, tolerance))
        return kinds

    def storm(seconds, k):
        return storm_points(k, seconds)

    kinds = build(write_points, range(1, size.writes + 1))
    kinds |= build(silent_points, range(1, size.writes + 1, 4 if full else 8))
    for resource, events in size.events.items():
        kinds |= build(watch_points, range(1, events + 1), resource)
    kinds |= build(drop_points, range(1, 21 if full else 6))
    kinds |= build(storm, (3, 8, 14), LONG_STORM if full and scenario == "success" else STORM)
    kinds |= build(list_points, range(1, 4))
    kinds |= {
        kind: [Point(scenario, kind, 1, rules, tolerance)]
        for kind, rules, tolerance in other_points()
    }
    kinds |= build(chaos_points, range(1, 31 if full else 6))
    return kinds if full else bounded(scenario, kinds)


# All places of these kinds, for these scenarios; of the rest a sample.
WHOLE_SCENARIOS = ("success", "worker-replaced")
WHOLE_KINDS = ("kill-before", "kill-after", "reply-lost")


def bounded(scenario, kinds):
    kept = {}
    for kind, points in kinds.items():
        if kind.startswith(("silent", "very-stale", "storm")) and scenario not in WHOLE_SCENARIOS:
            continue
        if scenario in WHOLE_SCENARIOS and kind in WHOLE_KINDS:
            share = 1
        elif kind in WHOLE_KINDS:
            share = 1 / 4
        else:
            share = 1 / 8
        kept[kind] = thinned(points, share, f"{scenario}/{kind}")
    return kept
