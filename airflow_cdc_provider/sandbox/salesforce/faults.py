"""Injected faults. A fault applies to the next ``times`` matching requests."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

INJECTED = "an injected fault"


@dataclass
class HttpFault:
    """Requests whose "METHOD /path" matches ``match`` fail: ``times`` of them, after the first ``after`` ones.

    ``code`` and ``message`` are those of the error; ``retry_after`` (seconds) becomes a header.
    """

    match: str
    status: int
    code: str = "UNKNOWN_EXCEPTION"
    message: str = INJECTED
    times: int = 1
    after: int = 0
    retry_after: int | None = None


@dataclass
class RpcFault:
    """Calls of ``method`` (GetTopic, GetSchema, Subscribe) fail: ``times`` of them, after the first ``after`` ones.

    ``code`` is the end of an error code (``service.unavailable``); empty for a connection that breaks without one.
    ``status`` is the name of a gRPC status. ``after_events``: a Subscribe first delivers that many events.
    """

    method: str
    code: str = ""
    status: str = "UNAVAILABLE"
    times: int = 1
    after: int = 0
    after_events: int | None = None


@dataclass
class BulkFault:
    """New jobs end in ``state`` Failed with ``message``, or stay InProgress until they are released.

    A job waits after ``hold_after_rows`` rows; it reads later commits in its remaining rows.
    """

    state: str = "Failed"
    message: str = "InternalServerError: Unknown error"
    times: int = 1
    after: int = 0
    hold_after_rows: int = 0


Fault = TypeVar("Fault", HttpFault, RpcFault, BulkFault)


@dataclass
class Faults:
    """``truncate_csv``: the number of result bodies to truncate. ``lose_events``: the number of events to lose.

    ``expire_tokens_after``: all tokens expire after that many more requests. ``hits`` counts the injected faults.
    """

    http: list[HttpFault] = field(default_factory=list)
    rpc: list[RpcFault] = field(default_factory=list)
    bulk: list[BulkFault] = field(default_factory=list)
    truncate_csv: int = 0
    lose_events: int = 0
    expire_tokens_after: int | None = None
    hits: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def http_fault(self, line: str) -> HttpFault | None:
        """The fault for a request, "METHOD /path"."""
        return self._next(self.http, lambda fault: re.search(fault.match, line) is not None)

    def rpc_fault(self, method: str) -> RpcFault | None:
        return self._next(self.rpc, lambda fault: fault.method == method)

    def bulk_fault(self) -> BulkFault | None:
        return self._next(self.bulk, lambda fault: True)

    def _next(self, faults: Iterable[Fault], matches: Callable[[Fault], bool]) -> Fault | None:
        with self._lock:
            for fault in faults:
                if fault.times and matches(fault):
                    if fault.after:
                        fault.after -= 1
                        continue
                    fault.times -= 1
                    self.hits += 1
                    return fault
        return None

    def tokens_expire_now(self) -> bool:
        with self._lock:
            if self.expire_tokens_after is None:
                return False
            self.expire_tokens_after -= 1
            if self.expire_tokens_after >= 0:
                return False
            self.expire_tokens_after = None
            self.hits += 1
            return True

    def take(self, name: str) -> bool:
        """Whether the counter ``name`` was above zero. Decreases it."""
        with self._lock:
            left = int(getattr(self, name))
            if not left:
                return False
            setattr(self, name, left - 1)
            self.hits += 1
            return True

    def clear(self) -> None:
        with self._lock:
            for faults in (self.http, self.rpc, self.bulk):
                faults.clear()
            self.truncate_csv = self.lose_events = 0
            self.expire_tokens_after = None
