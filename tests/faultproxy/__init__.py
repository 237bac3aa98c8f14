"""A TLS proxy between a Kubernetes client and a real API server: it records every request and
injects faults by rules. See README.md."""

from .certificates import Certificates
from .proxy import Proxy
from .record import Request, requests, writes
from .rules import Answer, Cut, Interrupt, OlderList, Rule, Silence, Slow
from .streams import CutWatch, Drop, ExpireWatch, HoldBack, Insert, Merge
from .upstream import Upstream

__all__ = [
    "Answer", "Certificates", "Cut", "CutWatch", "Drop", "ExpireWatch", "HoldBack", "Insert", "Interrupt",
    "Merge", "OlderList", "Proxy", "Request", "Rule", "Silence", "Slow", "Upstream", "requests",
    "writes",
]  # fmt: skip
