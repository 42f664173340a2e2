"""A small HTTP server with prepared answers that records the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests

from airflow_cdc_provider.connectors.sources.salesforce.access import Access, Flow
from airflow_cdc_provider.connectors.sources.salesforce.http import Http
from airflow_cdc_provider.connectors.sources.salesforce.oauth import Login

ORG, USER = "00D000000000001EAA", "005000000000001AAA"
VERSION = "66.0"
ROOT = f"/services/data/v{VERSION}"


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """``body`` is sent as JSON unless it is bytes. ``cut``: the number of bytes that are announced and not sent."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: int = 0


Reply = Answer | Callable[[ReceivedRequest], Answer]


def refused(status: int, code: str, message: str = "no", **headers: str) -> Answer:
    return Answer(
        [{"errorCode": code, "message": message}], status, {k.replace("_", "-"): v for k, v in headers.items()}
    )


class HttpServer:
    """``on`` sets the answers of a path in their order; the last one is repeated. Tokens are ``token-1``, ``token-2``,
    …; only the newest is accepted, unless ``accepts`` contains others."""

    def __init__(self) -> None:
        self.received: list[ReceivedRequest] = []
        self.issued = 0
        self.expired: set[str] = set()
        self._replies: dict[tuple[str, str], list[Reply]] = {}
        self.on("POST", "/services/oauth2/token", self._issue)

    def on(self, method: str, path: str, *replies: Reply) -> None:
        self._replies[method, path] = list(replies)

    def __enter__(self) -> HttpServer:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1  # an answer in one piece, or each would wait for an acknowledgement

            def handle_one(self) -> None:
                server.answer(self)

            do_GET = do_POST = do_PATCH = do_DELETE = handle_one

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        request = ReceivedRequest(handler.command, parts.path, query, dict(handler.headers.items()), body)
        self.received.append(request)
        reply = self._reply(request)
        content = (
            reply.body
            if isinstance(reply.body, bytes)
            else b""
            if reply.body is None
            else json.dumps(reply.body).encode()
        )
        handler.send_response_only(reply.status)
        usual = {"Content-Type": "application/json", "Date": handler.date_time_string()}
        for name, value in {**usual, **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content) + reply.cut))
        handler.end_headers()
        handler.wfile.write(content)
        if reply.cut:
            handler.close_connection = True

    def _reply(self, request: ReceivedRequest) -> Answer:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if request.path.startswith("/services/data") and token in {"", *self.expired}:
            return refused(401, "INVALID_SESSION_ID")
        replies = self._replies.get((request.method, request.path))
        if not replies:
            return refused(404, "NOT_FOUND", f"{request.method} {request.path}")
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        return reply if isinstance(reply, Answer) else reply(request)

    def _issue(self, request: ReceivedRequest) -> Answer:
        self.issued += 1
        return Answer(self.token(f"token-{self.issued}"))

    def token(self, access_token: str, **more: str) -> dict[str, str]:
        identity = f"https://login.salesforce.com/id/{ORG}/{USER}"
        return {"access_token": access_token, "instance_url": self.url, "id": identity, "token_type": "Bearer", **more}

    def paths(self, method: str = "") -> list[str]:
        return [one.path for one in self.received if method in ("", one.method) and "oauth2" not in one.path]


def access(server: HttpServer, flow: Flow = Flow.CLIENT_CREDENTIALS, **more: Any) -> Access:
    return Access("crm", flow, server.url, "key", "https://login.salesforce.com", consumer_secret="s3cret", **more)


def http(server: HttpServer, waited: list[float] | None = None) -> Http:
    session = requests.Session()
    session.trust_env = False
    return Http(Login(access(server), session), session, (waited if waited is not None else []).append)
