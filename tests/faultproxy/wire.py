"""HTTP/1.1 messages over asyncio streams; h11 knows the protocol."""

import dataclasses

import h11

BLOCK = 1 << 16
# Of a connection, not of a message: passed on they would describe the other connection.
HOP_BY_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"te", b"upgrade"}


@dataclasses.dataclass
class Reply:
    """A whole answer. `headers` are pairs of bytes, names in lower case."""

    status: int
    headers: list
    body: bytes = b""


class Wire:
    """One connection, seen from one side. Errors are those of the streams and of h11."""

    def __init__(self, reader, writer, role):
        self.reader = reader
        self.writer = writer
        self.http = h11.Connection(role, max_incomplete_event_size=1 << 20)

    async def event(self):
        """The next event of the other side."""
        while True:
            event = self.http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self.http.receive_data(await self.reader.read(BLOCK))

    async def body(self):
        """The rest of a message as one piece; None when the connection ended before it did."""
        parts = []
        while True:
            event = await self.event()
            if isinstance(event, h11.Data):
                parts.append(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                return b"".join(parts)
            else:
                return None

    async def send(self, *events):
        data = b"".join(self.http.send(event) or b"" for event in events)
        if data:
            self.writer.write(data)
            await self.writer.drain()

    async def send_message(self, head, body):
        """A whole message. `head` is an h11.Request or h11.Response without a length."""
        headers = [*head.headers.raw_items(), (b"content-length", b"%d" % len(body))]
        parts = {"headers": headers}
        if isinstance(head, h11.Request):
            parts |= {"method": head.method, "target": head.target}
            message = h11.Request(**parts)
        else:
            message = h11.Response(status_code=head.status_code, **parts)
        await self.send(message, *([h11.Data(data=body)] if body else []), h11.EndOfMessage())

    def next_cycle(self):
        """Ready for another message on this connection; False when it can't be used again."""
        if self.http.our_state is not h11.DONE or self.http.their_state is not h11.DONE:
            return False
        self.http.start_next_cycle()
        return True

    def cut(self):
        """Ends the connection at once, without any goodbye."""
        self.writer.transport.abort()


def end_to_end(headers):
    """The headers that a proxy passes on."""
    return [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP]
