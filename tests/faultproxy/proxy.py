"""The proxy: one listener for one client. Several share an Upstream and a TLS context."""

import asyncio
import base64
import contextlib
import json

import h11

from .record import Request
from .rules import CutConnection
from .wire import Reply, Wire, end_to_end

TOKEN = "faultproxy"  # known to the client by its kubeconfig; nobody else on loopback needs to know
# Told to the client, asked of the server by the proxy's own credentials.
NOT_FORWARDED = {b"host", b"authorization", b"accept-encoding"}
NETWORK_ERRORS = (OSError, h11.RemoteProtocolError, h11.LocalProtocolError, EOFError)


class Proxy:
    """Between one client and the API server. Everything runs on the event loop that starts it.

    `rules` are asked in order for each request; the first that takes it decides. They may be
    changed at any time. `record` has every request, in the order of arrival.
    """

    def __init__(self, upstream, certificates, name="client"):
        self.name = name
        self.rules = []
        self.record = []
        self.first_lists = {}  # resource -> Reply
        self.trouble = []  # errors of the proxy itself or of the way to the API server
        self._upstream = upstream
        self._certificates = certificates
        self._open = asyncio.Event()  # not set: silent
        self._open.set()
        self._writes = 0
        self._server = None
        self._tasks = set()

    async def start(self):
        """Listens on a free port of 127.0.0.1."""
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, ssl=self._certificates.server_context(), backlog=128
        )
        return self

    @property
    def url(self):
        return f"https://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def kubeconfig(self):
        """A kubeconfig for the client, as text (JSON is YAML)."""
        authority = base64.b64encode(self._certificates.authority).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "proxy", "cluster": cluster}],
                "users": [{"name": "client", "user": {"token": TOKEN}}],
                "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "client"}}],
                "current-context": "proxy",
            }
        )

    def silence(self):
        """From now on nothing comes or goes, while all connections stay open."""
        self._open.clear()

    def speak(self):
        """Ends the silence; connections go on where they were."""
        self._open.set()

    def cut_all(self):
        """Breaks every connection."""
        for task in self._tasks:
            task.cancel()

    @property
    def writes(self):
        """The writes so far."""
        return [request for request in self.record if request.write]

    async def close(self):
        self._server.close()
        self.cut_all()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        wire = Wire(reader, writer, h11.SERVER)
        try:
            while await self._serve_one(wire):
                pass
        except CutConnection as cut:
            if cut.args:  # so much of a watch's line still got through
                with contextlib.suppress(*NETWORK_ERRORS):
                    await wire.send(h11.Data(data=cut.args[0]))
        except NETWORK_ERRORS:
            pass  # the client went, or was killed
        except asyncio.CancelledError:
            pass  # cut_all: to the client it looks like a broken connection
        except Exception as error:  # a bug here must not look like the client's
            self.trouble.append(repr(error))
            raise
        finally:
            self._tasks.discard(task)
            wire.cut()

    async def _serve_one(self, wire):
        """One exchange; whether the connection is good for another."""
        head = await wire.event()
        if not isinstance(head, h11.Request):
            return False
        body = await wire.body()
        if body is None:
            return False
        await self._gate(wire)
        request = self._note(head, body)
        headers = end_to_end(head.headers)
        if (b"authorization", f"Bearer {TOKEN}".encode()) not in headers:
            await self._tell(wire, request, Reply(401, [], b"{}"))
            return wire.next_cycle()
        headers = [pair for pair in headers if pair[0] not in NOT_FORWARDED]
        fault = self._fault_of(request)
        reply = await fault.before(request) if fault else None
        if reply is None and request.verb == "watch":
            return await self._watch(wire, request, headers, fault)
        if reply is None:
            reply = await self._ask(request, headers)
            if fault:
                reply = await fault.after(request, reply, self)
        await self._gate(wire)
        await self._tell(wire, request, reply)
        return wire.next_cycle()

    async def _gate(self, wire):
        """Waits for the end of a silence. What a client has given up by then never arrives."""
        if not self._open.is_set():
            await self._open.wait()
            if wire.reader.at_eof():
                raise CutConnection

    def _note(self, head, body):
        writes = head.method in (b"POST", b"PUT", b"PATCH", b"DELETE")
        self._writes += writes
        request = Request(
            number=len(self.record) + 1,
            write=self._writes if writes else 0,
            client=self.name,
            method=head.method.decode(),
            target=head.target.decode(),
            body=body,
            begun=asyncio.get_running_loop().time(),
        )
        self.record.append(request)
        return request

    def _fault_of(self, request):
        now = asyncio.get_running_loop().time()
        for rule in self.rules:
            if rule.takes(request, now):
                request.fault = str(rule.fault)
                return rule.fault
        return None

    async def _ask(self, request, headers):
        # Not undone when the client goes: it has been sent, and the server acts on it.
        sent = self._upstream.exchange(request.method, request.target, headers, request.body)
        try:
            reply = await asyncio.shield(asyncio.ensure_future(sent))
        except NETWORK_ERRORS as error:
            self.trouble.append(f"{request}: {error!r}")
            raise CutConnection from error
        request.status = reply.status
        if request.write and reply.status < 300:
            request.reply = reply.body
        request.ended = asyncio.get_running_loop().time()
        if request.verb == "list" and reply.status == 200 and b'"continue":"' not in reply.body:
            self.first_lists.setdefault(request.resource, reply)
        return reply

    async def _tell(self, wire, request, reply):
        request.told = reply.status
        await wire.send_message(h11.Response(status_code=reply.status, headers=reply.headers),
                                reply.body)  # fmt: skip

    async def _watch(self, wire, request, headers, fault):
        async with self._upstream.stream(request.target, headers) as stream:
            request.status = request.told = stream.status
            await wire.send(h11.Response(status_code=stream.status, headers=stream.headers))
            lines = split(stream.blocks())
            if fault and stream.status == 200:
                lines = fault.lines(lines)
            relay = asyncio.ensure_future(self._relay(wire, lines))
            gone = asyncio.ensure_future(wire.reader.read(1))  # the client hangs up
            try:
                await asyncio.wait({relay, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not relay.done():
                    return False
                relay.result()
            finally:
                relay.cancel()
                gone.cancel()
                await asyncio.gather(relay, gone, return_exceptions=True)
        return False  # watches are few: each has its own connection

    async def _relay(self, wire, lines):
        async for line in lines:
            await self._gate(wire)
            await wire.send(h11.Data(data=line + b"\n"))
        await self._gate(wire)
        await wire.send(h11.EndOfMessage())


async def split(blocks):
    """Lines of a stream, without their ends. A last line without an end is one too."""
    rest = b""
    async for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        for line in lines:
            if line:
                yield line
    if rest:
        yield rest
