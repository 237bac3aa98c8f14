"""The API server itself: a small asyncio client with the administrator's certificate."""

import asyncio
import base64
import contextlib
import json
import pathlib
import ssl
import tempfile
import urllib.parse

import h11
import yaml

from .wire import Reply, Wire, end_to_end


class StatusError(Exception):
    """The API server refused a request."""

    def __init__(self, reply, what):
        super().__init__(f"{what}: {reply.status} {reply.body[:300].decode(errors='replace')}")
        self.status = reply.status


class Stream:
    """An answer whose body is still coming."""

    def __init__(self, wire, status, headers):
        self.wire = wire
        self.status = status
        self.headers = headers

    async def blocks(self):
        """Blocks of the body until the server ends it; ConnectionError when it breaks off."""
        while True:
            event = await self.wire.event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return
            else:
                raise ConnectionError("the API server closed the connection")


class Upstream:
    """Connections to one API server, kept for the next request. For one event loop."""

    def __init__(self, kubeconfig):
        """`kubeconfig` is a file with client certificates inside (tests/cluster writes such)."""
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        url = urllib.parse.urlsplit(cluster["server"])
        self.host, self.port = url.hostname, url.port
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._tls = ssl.create_default_context(cadata=ca)
        with tempfile.NamedTemporaryFile() as pair:  # ssl reads certificates from files only
            pair.write(base64.b64decode(user["client-certificate-data"]))
            pair.write(base64.b64decode(user["client-key-data"]))
            pair.flush()
            self._tls.load_cert_chain(pair.name)
        self._idle = []

    async def _connect(self):
        while self._idle:
            wire = self._idle.pop()
            if not wire.reader.at_eof() and not wire.writer.is_closing():
                return wire
            wire.cut()
        reader, writer = await asyncio.open_connection(self.host, self.port, ssl=self._tls)
        return Wire(reader, writer, h11.CLIENT)

    async def _send(self, method, target, headers, body):
        wire = await self._connect()
        try:
            own = [(b"host", f"{self.host}:{self.port}".encode())]
            head = h11.Request(method=method, target=target, headers=own + end_to_end(headers))
            await wire.send_message(head, body)
            response = await wire.event()
            if not isinstance(response, h11.Response):
                raise ConnectionError("the API server closed the connection")
        except BaseException:
            wire.cut()
            raise
        return wire, response

    async def exchange(self, method, target, headers=(), body=b""):
        """One request and its whole answer."""
        wire, response = await self._send(method, target, list(headers), body)
        try:
            whole = await wire.body()
            if whole is None:
                raise ConnectionError("the API server closed the connection")
        except BaseException:
            wire.cut()
            raise
        if wire.next_cycle():
            self._idle.append(wire)
        return Reply(response.status_code, end_to_end(response.headers), whole)

    @contextlib.asynccontextmanager
    async def stream(self, target, headers=()):
        """A GET whose body has no end; its connection is closed on leaving."""
        wire, response = await self._send("GET", target, list(headers), b"")
        try:
            yield Stream(wire, response.status_code, end_to_end(response.headers))
        finally:
            wire.cut()

    async def json(self, method, path, body=None, kind="application/json"):
        """For tests: sends and receives objects; raises StatusError above 299."""
        data = b"" if body is None else json.dumps(body).encode()
        reply = await self.exchange(method, path, [(b"content-type", kind.encode())], data)
        if reply.status > 299:
            raise StatusError(reply, f"{method} {path}")
        return json.loads(reply.body)

    async def patch(self, path, body):
        return await self.json("PATCH", path, body, "application/merge-patch+json")

    def close(self):
        for wire in self._idle:
            wire.cut()
        self._idle.clear()
