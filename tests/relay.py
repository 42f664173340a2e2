"""A relay between a client and an object store that disturbs requests."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONDITIONS = ("if-none-match", "x-goog-if-generation-match")
HOLD_LIMIT_S = 60
HOP_BY_HOP = ("connection", "transfer-encoding", "content-length")


@dataclass
class Relay:
    """``forgetful``: drops the conditions of requests. ``refusing``: answers 403. ``losing``: how many answers to
    conditional requests, which the store has carried out, do not reach the client. ``holds``: which requests, by their
    method, path and headers, ``arrive`` and wait until they are ``released``."""

    store: str
    forgetful: bool = False
    refusing: bool = False
    losing: int = 0
    holds: Callable[[str, str, Mapping[str, str]], bool] = lambda *_: False
    address: str = ""
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    relay: Relay
    protocol_version = "HTTP/1.1"

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.relay.refusing:
            self._send(403, {"Content-Type": "application/xml"}, b"<Error><Code>AccessDenied</Code></Error>")
            return
        headers = {name: value for name, value in self.headers.items()}
        is_conditional = any(name.lower() in CONDITIONS for name in headers)
        if self.relay.holds(self.command, self.path, headers):
            self.relay.arrived.set()
            self.relay.released.wait(HOLD_LIMIT_S)
        if self.relay.forgetful:
            headers = {name: value for name, value in headers.items() if name.lower() not in CONDITIONS}
        onward = http.client.HTTPConnection(self.relay.store)
        onward.request(self.command, self.path, body, headers)
        answer = onward.getresponse()
        content = answer.read()
        onward.close()
        if is_conditional and self.relay.losing:
            self.relay.losing -= 1
            self.close_connection = True
            return
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP}
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        self._send(answer.status, kept, content, length)

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = forward

    def _send(self, status: int, headers: dict[str, str], content: bytes, length: str | None = None) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Suppressed."""


@contextmanager
def relay_to(address: str) -> Iterator[Relay]:
    """``address``: ``http://host:port`` of the store."""
    relay = Relay(address.removeprefix("http://"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"relay": relay}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    relay.address = f"http://127.0.0.1:{server.server_port}"
    yield relay
    server.shutdown()
    server.server_close()
