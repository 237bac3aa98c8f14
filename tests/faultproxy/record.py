"""What a proxy remembers of each request, and how rules choose among them."""

import dataclasses
import json
import urllib.parse

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclasses.dataclass
class Request:
    """One request, in the API's terms. `write` numbers the writes from 1; a read has 0."""

    number: int
    write: int
    client: str  # the proxy's name: who asked
    method: str
    target: str
    body: bytes
    begun: float  # of the event loop's clock, as `ended`
    ended: float = 0.0
    status: int = 0  # the server's answer, 0 = the server was not asked or did not answer
    told: int = 0  # what the client was told, 0 = nothing
    fault: str = ""
    reply: bytes = b""  # of a write that was done
    verb: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    def __post_init__(self):
        parts = urllib.parse.urlsplit(self.target)
        self.query = dict(urllib.parse.parse_qsl(parts.query))
        path = parts.path.strip("/").split("/")
        # /api/v1/… or /apis/GROUP/VERSION/…
        rest = path[2:] if path[0] == "api" else path[3:] if path[0] == "apis" else []
        if len(rest) >= 3 and rest[0] == "namespaces":
            self.namespace, rest = rest[1], rest[2:]
        self.resource, self.name, self.subresource = (rest + ["", "", ""])[:3]
        self.verb = VERBS.get(self.method, "get" if self.name else "list")
        if self.verb == "list" and self.query.get("watch", "").lower() in ("1", "true"):
            self.verb = "watch"

    @property
    def version(self):
        """The resourceVersion that a create, update or patch led to: an order of all writes, by
        whomever. 0 for everything else."""
        if self.method == "DELETE" or not self.reply:
            return 0
        return int(json.loads(self.reply)["metadata"]["resourceVersion"])

    def __str__(self):
        what = "/".join(part for part in (self.resource, self.name, self.subresource) if part)
        fault = f" [{self.fault}]" if self.fault else ""
        write = f" write {self.write}" if self.write else ""
        return f"{self.number}{write}: {self.verb} {what or self.target} -> {self.status}{fault}"


def requests(verb=None, resource=None, name=None, subresource=None):
    """A selector: requests that agree with everything given."""

    def select(request):
        return all(
            wanted is None or wanted == is_so
            for wanted, is_so in (
                (verb, request.verb),
                (resource, request.resource),
                (name, request.name),
                (subresource, request.subresource),
            )
        )

    return select


def writes(resource=None):
    """A selector: all that changes something."""
    return lambda request: bool(request.write) and resource in (None, request.resource)
