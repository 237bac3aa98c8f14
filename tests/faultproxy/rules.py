"""Rules, and the faults of single exchanges. Those of watches are in streams.py."""

import asyncio
import json
import math

from .wire import Reply

REASONS = {410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


class CutConnection(Exception):
    """Raised by a fault: the client's connection ends here, without an answer."""


class Fault:
    """What happens to a request. One object may serve many requests, also at the same time."""

    async def before(self, request):
        """Before the server sees it. A Reply is told to the client and the server is not asked."""

    async def after(self, request, reply, proxy):
        """After the server has answered, before the client is told; returns what it is told."""
        return reply

    def lines(self, source):
        """Lines of a watch as the client sees them, from those that the server sends."""
        return source

    def __str__(self):
        return type(self).__name__


class Rule:
    """Applies `fault` to the `at`-th request that `when` selects and to the `times` - 1 after it;
    if `seconds` is given, to all that come within that time after the first."""

    def __init__(self, when, fault, at=1, times=1, seconds=None):
        self.when = when
        self.fault = fault
        self.at = at
        self.times = math.inf if seconds is not None else times
        self.seconds = seconds
        self.seen = 0
        self.applied = 0
        self._until = math.inf

    def takes(self, request, now):
        """Counts the request; whether the fault is for it."""
        if not self.when(request):
            return False
        self.seen += 1
        if not self.at <= self.seen < self.at + self.times:
            return False
        if self.seconds is not None and self._until == math.inf:
            self._until = now + self.seconds
        if now > self._until:
            return False
        self.applied += 1
        return True


class Cut(Fault):
    """The connection breaks; `after` the server has answered: the reply is lost."""

    def __init__(self, after=False):
        self._after = after

    async def before(self, request):
        if not self._after:
            raise CutConnection

    async def after(self, request, reply, proxy):
        raise CutConnection

    def __str__(self):
        return "reply lost" if self._after else "request lost"


class Interrupt(Fault):
    """Calls `action` (kill the client, say) and cuts."""

    def __init__(self, action, after=False):
        self._action = action
        self._after = after

    async def before(self, request):
        if not self._after:
            self._action()
            raise CutConnection

    async def after(self, request, reply, proxy):
        self._action()
        raise CutConnection

    def __str__(self):
        return "interrupted after" if self._after else "interrupted before"


class Slow(Fault):
    """The server answers late."""

    def __init__(self, seconds, after=False):
        self._seconds = seconds
        self._after = after

    async def before(self, request):
        if not self._after:
            await asyncio.sleep(self._seconds)

    async def after(self, request, reply, proxy):
        if self._after:
            await asyncio.sleep(self._seconds)
        return reply


class Silence(Fault):
    """No answer, and the connection stays open; until `released` is set, then it breaks."""

    def __init__(self, after=False):
        self._after = after
        self.released = asyncio.Event()

    async def before(self, request):
        if not self._after:
            await self._wait()

    async def after(self, request, reply, proxy):
        await self._wait()

    async def _wait(self):
        await self.released.wait()
        raise CutConnection


class Answer(Fault):
    """An answer in the API server's place."""

    def __init__(self, status, retry_after=None):
        self._status = status
        self._retry_after = retry_after

    async def before(self, request):
        headers = [(b"content-type", b"application/json")]
        if self._retry_after is not None:
            headers.append((b"retry-after", str(self._retry_after).encode()))
        return Reply(self._status, headers, json.dumps(status_object(self._status)).encode())

    def __str__(self):
        return f"answer {self._status}"


class OlderList(Fault):
    """A list is answered with the oldest whole one that this client has got of the resource."""

    async def after(self, request, reply, proxy):
        return proxy.first_lists.get(request.resource, reply)


def status_object(code):
    """metav1.Status of an error."""
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": f"a fault was injected ({code})", "reason": REASONS.get(code, "Unknown"),
        "code": code,
    }  # fmt: skip
