"""What shall go wrong, ordered in advance. Each fault is used up by what it hits."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field


@dataclass
class HttpFault:
    """Answer requests whose "METHOD /path" matches ``match`` with an error: ``times`` of them, after ``after`` others.

    ``code`` and ``message`` are the org's; ``retry_after`` (seconds) becomes a header.
    """

    match: str
    status: int
    code: str = "UNKNOWN_EXCEPTION"
    message: str = "ordered by the test"
    times: int = 1
    after: int = 0
    retry_after: int | None = None


@dataclass
class RpcFault:
    """Refuse calls of ``method`` (GetTopic, GetSchema, Subscribe): ``times`` of them, after ``after`` others.

    ``code`` is the end of an error code (``service.unavailable``); empty for a connection that breaks without one.
    ``status`` is the name of a gRPC status. ``after_events``: a Subscribe delivers so many before.
    """

    method: str
    code: str = ""
    status: str = "UNAVAILABLE"
    times: int = 1
    after: int = 0
    after_events: int | None = None


@dataclass
class BulkFault:
    """For jobs to be created. ``state`` Failed with ``message``, or InProgress: held until it is released.

    ``hold_after_rows`` holds a job that has already read so many rows; commits meanwhile are seen by the rest of it.
    """

    state: str = "Failed"
    message: str = "InternalServerError: Unknown error"
    times: int = 1
    hold_after_rows: int = 0


@dataclass
class Faults:
    """``truncate_csv``: so many result bodies break off in the middle.

    ``expire_tokens_after``: every token ends after that many more requests.
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
        """For this request, "METHOD /path"."""
        with self._lock:
            for fault in self.http:
                if fault.times and re.search(fault.match, line):
                    if fault.after:
                        fault.after -= 1
                        continue
                    fault.times -= 1
                    self.hits += 1
                    return fault
        return None

    def rpc_fault(self, method: str) -> RpcFault | None:
        with self._lock:
            for fault in self.rpc:
                if fault.times and fault.method == method:
                    if fault.after:
                        fault.after -= 1
                        continue
                    fault.times -= 1
                    self.hits += 1
                    return fault
        return None

    def bulk_fault(self) -> BulkFault | None:
        with self._lock:
            for fault in self.bulk:
                if fault.times:
                    fault.times -= 1
                    self.hits += 1
                    return fault
        return None

    def tokens_end_now(self) -> bool:
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
        """Whether one of a counted fault is left; it is used up."""
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
