"""Faults of watches. Each counts the events of all watches it is applied to, from 1, so that it
happens once although a client watches again and again."""

import asyncio
import json
import math

from .rules import CutConnection, Fault, status_object


def expired():
    """The event with which a server ends a watch whose version it no longer has."""
    return json.dumps({"type": "ERROR", "object": status_object(410)}).encode()


class StreamFault(Fault):
    """Base: `at` is the number of the event from which on something happens."""

    def __init__(self, at):
        self.at = at
        self.events = 0

    def _counts(self, line):
        """Counts an event that tells of an object; bookmarks do not."""
        if b'"type":"BOOKMARK"' in line[:40]:
            return False
        self.events += 1
        return True

    def __str__(self):
        return f"{type(self).__name__} from event {self.at}"


class HoldBack(StreamFault):
    """A stale watch: from event `at` on nothing arrives for `seconds`, then all of it in order. A
    watch begun meanwhile is held back too."""

    def __init__(self, at, seconds):
        super().__init__(at)
        self._seconds = seconds
        self._until = math.inf  # of the event loop's clock; inf: has not begun

    async def lines(self, source):
        held = []
        loop = asyncio.get_running_loop()
        iterator = aiter(source)
        coming = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(iterator, None))
                limit = None if self._until == math.inf else max(self._until - loop.time(), 0)
                await asyncio.wait({coming}, timeout=limit if held else None)
                if held and loop.time() >= self._until:
                    for line in self._released(held):
                        yield line
                    held = []
                if not coming.done():
                    continue
                line, coming = coming.result(), None
                if line is None:
                    return  # what was held is lost with the watch; the client resumes before it
                self._counts(line)
                if self.events < self.at or loop.time() >= self._until:
                    yield line
                    continue
                if self._until == math.inf:
                    self._until = loop.time() + self._seconds
                held.append(line)
        finally:
            if coming:
                coming.cancel()

    def _released(self, held):
        return held


class Merge(HoldBack):
    """As HoldBack, but of an object's changes in between only the last one arrives."""

    def _released(self, held):
        newest = {}
        for number, line in enumerate(held):
            event = json.loads(line)
            if event["type"] == "MODIFIED":
                newest[event["object"]["metadata"].get("uid")] = number
        for number, line in enumerate(held):
            event = json.loads(line)
            if event["type"] != "MODIFIED":
                yield line
            elif newest[event["object"]["metadata"].get("uid")] == number:
                yield line


class Drop(StreamFault):
    """From event `at` on, those that `choose(number)` names never arrive. No client could notice,
    so after `seconds` the server forgets the version and the client must list again."""

    def __init__(self, at, choose, seconds):
        super().__init__(at)
        self._choose = choose
        self._seconds = seconds
        self._over = False

    async def lines(self, source):
        loop = asyncio.get_running_loop()
        until = math.inf
        iterator = aiter(source)
        coming = None
        try:
            while True:
                coming = coming or asyncio.ensure_future(anext(iterator, None))
                limit = None if until == math.inf else max(until - loop.time(), 0)
                await asyncio.wait({coming}, timeout=limit)
                if loop.time() >= until:
                    self._over = True
                    yield expired()
                    return
                if not coming.done():
                    continue
                line, coming = coming.result(), None
                if line is None:
                    self._over = self._over or until != math.inf
                    if until != math.inf:
                        yield expired()
                    return
                event = self._counts(line)
                if event and not self._over and self.events >= self.at:
                    if self._choose(self.events):
                        until = min(until, loop.time() + self._seconds)
                        continue
                yield line
        finally:
            if coming:
                coming.cancel()


class ExpireWatch(StreamFault):
    """In the place of event `at`: 410 inside the 200."""

    async def lines(self, source):
        async for line in source:
            if self._counts(line) and self.events == self.at:
                yield expired()
                return
            yield line


class Insert(StreamFault):
    """Before event `at`: a line that is none. `line` may be any bytes without a newline."""

    def __init__(self, at, line):
        super().__init__(at)
        self._line = line

    async def lines(self, source):
        async for line in source:
            if self._counts(line) and self.events == self.at:
                yield self._line
            yield line


class CutWatch(StreamFault):
    """The connection breaks in the middle of event `at`, at half its length."""

    async def lines(self, source):
        async for line in source:
            if self._counts(line) and self.events == self.at:
                raise CutConnection(line[: len(line) // 2])
            yield line
