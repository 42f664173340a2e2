"""A front of a schema registry, with what the embedded one lacks (TLS, logins, tokens, schemas by GUID) and faults."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from airflow_cdc_provider.sandbox.server import HOST

USER, PASSWORD, TOKEN, CLIENT_SECRET = "reader", "secret-password", "secret-token", "client-secret"


@dataclass
class RegistryFront:
    """``authorization``: the only accepted header of this name; none is required if it is empty. ``denied``: paths that
    are answered with 403. ``failing``: how many requests are answered with 503. ``stalled_after``: later requests than
    this number wait for ``running``. ``guids``: GUID → id."""

    behind: str
    authorization: str = ""
    denied: set[str] = field(default_factory=set)
    failing: int = 0
    stalled_after: int | None = None
    guids: dict[str, int] = field(default_factory=dict)
    running: threading.Event = field(default_factory=threading.Event)
    paths: list[str] = field(default_factory=list)
    url: str = ""


def basic(user: str = USER, password: str = PASSWORD) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


@contextmanager
def registry_front(
    behind: str, certificate: tuple[Path, Path] | None = None, clients: Path | None = None
) -> Iterator[RegistryFront]:
    """``certificate``: file and key for TLS. ``clients``: the authority of certificates that clients must have."""
    front = RegistryFront(behind)
    server = ThreadingHTTPServer((HOST, 0), _handler(front))
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        if clients is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(clients)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    front.url = f"{'https' if certificate else 'http'}://{HOST}:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield front
    finally:
        front.running.set()
        server.shutdown()
        serving.join()
        server.server_close()


def _handler(front: RegistryFront) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            front.paths.append(self.path)
            if front.stalled_after is not None and len(front.paths) > front.stalled_after:
                front.running.wait()
            path = urlsplit(self.path).path
            if front.authorization and self.headers.get("Authorization") != front.authorization:
                self._answer(401, {"error_code": 40101, "message": "Unauthorized"})
            elif path in front.denied:
                self._answer(403, {"error_code": 40301, "message": "User is denied operation Read on Subject"})
            elif front.failing:
                front.failing -= 1
                self._answer(503, {"error_code": 50302, "message": "starting"})
            else:
                self._pass_on()

        def do_POST(self) -> None:
            """A token for a client."""
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if form.get("grant_type") != ["client_credentials"]:
                self._answer(400, {"error": "unsupported_grant_type"})
                return
            self._answer(200, {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 300})

        def _pass_on(self) -> None:
            guid = urlsplit(self.path).path.removeprefix("/schemas/guids/")
            path = f"/schemas/ids/{front.guids[guid]}" if guid in front.guids else self.path
            parts = urlsplit(front.behind)
            client = http.client.HTTPConnection(parts.hostname or HOST, parts.port, timeout=30)
            with closing(client):
                client.request("GET", parts.path + path)
                answer = client.getresponse()
                status, body = answer.status, json.loads(answer.read())
            self._answer(status, body)

        def _answer(self, status: int, body: object) -> None:
            content = json.dumps(body).encode()
            with suppress(BrokenPipeError, ConnectionResetError):  # the client was killed
                self._send(status, content)

        def _send(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """The tests read ``paths``."""

    return Handler
