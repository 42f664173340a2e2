"""The HTTP server: a thread per connection, with or without TLS.

A response is one write, so that no part of it waits for an acknowledgement of the client.
"""

from __future__ import annotations

import gzip
import ssl
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from airflow_cdc_provider.sandbox.salesforce.http import Request, Response

Handle = Callable[[Request], Response]
PACKET = 1400


class Server(ThreadingHTTPServer):
    """Serves ``handle`` on loopback from ``start`` to ``stop``. ``now_ms`` is the time in the Date header."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, handle: Handle, now_ms: Callable[[], int], port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(("127.0.0.1", port), Connection)
        self.handle_one, self.now_ms = handle, now_ms
        self.scheme = "http" if tls is None else "https"
        if tls is not None:
            # The handshake runs in the thread of its connection, not in the one that accepts connections.
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect or reject the certificate. Any other error is a bug of the sandbox."""
        if not isinstance(sys.exception(), ConnectionError | ssl.SSLError | TimeoutError):
            super().handle_error(request, client_address)


def compressed(response: Response, request: Request) -> Response:
    """Compress a body of more than a packet, if the client accepts it."""
    if len(response.body) < PACKET or response.cut is not None:
        return response
    if "gzip" not in request.headers.get("accept-encoding", ""):
        return response
    headers = {**response.headers, "Content-Encoding": "gzip"}
    return replace(response, body=gzip.compress(response.body, 1), headers=headers)


class Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def answer_request(self) -> None:
        target = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        request = Request(
            self.command,
            unquote(target.path),
            dict(parse_qsl(target.query, keep_blank_values=True)),
            {name.lower(): value for name, value in self.headers.items()},
            self.rfile.read(length),
            self.server.scheme,
        )
        self.write(compressed(self.server.handle_one(request), request))

    do_GET = do_POST = do_PATCH = do_DELETE = do_PUT = do_HEAD = answer_request

    def write(self, response: Response) -> None:
        lines = [
            f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
            f"Date: {formatdate(self.server.now_ms() / 1000, usegmt=True)}",
            f"Content-Length: {len(response.body)}",
        ]
        if response.body:
            lines.append(f"Content-Type: {response.content_type}")
        lines += [f"{name}: {value}" for name, value in response.headers.items()]
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        body = response.body if response.cut is None else response.body[: response.cut]
        self.wfile.write(head + (b"" if self.command == "HEAD" else body))
        if response.cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""
