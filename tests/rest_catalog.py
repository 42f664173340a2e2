"""A REST catalog on loopback: the part of Iceberg's REST protocol that tables need, over a SQLite catalog. Its
warehouse is a folder or a bucket."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.table import CommitTableRequest, StagedTable

Answer = tuple[int, dict[str, Any] | None]
STATUS: dict[type[Exception], int] = {
    NoSuchTableError: 404,
    NoSuchNamespaceError: 404,
    NamespaceAlreadyExistsError: 409,
    NamespaceNotEmptyError: 409,
    TableAlreadyExistsError: 409,
    CommitFailedException: 409,
}


@dataclass(frozen=True)
class Warehouse:
    """``properties``: with which the catalog itself writes metadata. ``config``: the part of its answers about tables
    that is no secret. ``vended``: credentials that it answers to clients that ask for them, ``in_config`` or in the
    part of the answer that has them per prefix."""

    location: str
    properties: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    vended: Mapping[str, str] = field(default_factory=dict)
    in_config: bool = False


class Catalog:
    """``secret``: the credential with which a client gets the token that all other requests need."""

    def __init__(self, folder: Path, secret: str, warehouse: Warehouse) -> None:
        self.secret = secret
        self.warehouse = warehouse
        where = {"uri": f"sqlite:///{folder}/catalog.db?timeout=60", "warehouse": warehouse.location}
        self.tables = SqlCatalog("rest", **where, **warehouse.properties)
        self.one_at_a_time = threading.Lock()
        self.routes: tuple[tuple[str, str, Callable[..., Answer]], ...] = (
            ("GET", r"/v1/config", lambda body: (200, {"defaults": {}, "overrides": {}})),
            ("POST", r"/v1/namespaces", self.create_namespace),
            ("GET|HEAD", r"/v1/namespaces/(\w+)", self.namespace),
            ("DELETE", r"/v1/namespaces/(\w+)", self.drop_namespace),
            ("POST", r"/v1/namespaces/(\w+)/properties", self.update_namespace),
            ("POST", r"/v1/namespaces/(\w+)/tables", self.create),
            ("GET", r"/v1/namespaces/(\w+)/tables", self.listed),
            ("GET|HEAD", r"/v1/namespaces/(\w+)/tables/(\w+)", self.load),
            ("POST", r"/v1/namespaces/(\w+)/tables/(\w+)", self.commit),
            ("DELETE", r"/v1/namespaces/(\w+)/tables/(\w+)", self.drop),
            ("POST", r"/v1/namespaces/(\w+)/tables/(\w+)/metrics", lambda body, *_: (204, None)),
        )

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if path == "/v1/oauth/tokens":
            given = parse_qs(body.decode())["client_secret"][0]
            return (200, {"access_token": "let-me-in", "token_type": "bearer"}) if given == self.secret else _error(401)
        if headers.get("Authorization") != "Bearer let-me-in":
            return _error(401)
        for methods, pattern, handle in self.routes:
            found = re.fullmatch(pattern, path)
            if found and method in methods.split("|"):
                try:
                    with self.one_at_a_time:
                        status, document = handle(json.loads(body or b"{}"), *found.groups())
                        return status, self.with_access(document, headers)
                except tuple(STATUS) as error:
                    return _error(STATUS[type(error)], error)
        return _error(404)

    def create_namespace(self, body: dict[str, Any]) -> Answer:
        self.tables.create_namespace(".".join(body["namespace"]))
        return 200, {"namespace": body["namespace"], "properties": {}}

    def namespace(self, body: dict[str, Any], namespace: str) -> Answer:
        return 200, {"namespace": [namespace], "properties": self.tables.load_namespace_properties(namespace)}

    def drop_namespace(self, body: dict[str, Any], namespace: str) -> Answer:
        self.tables.drop_namespace(namespace)
        return 204, None

    def update_namespace(self, body: dict[str, Any], namespace: str) -> Answer:
        summary = self.tables.update_namespace_properties(
            namespace, set(body.get("removals") or ()) or None, body.get("updates") or {}
        )
        return 200, {"updated": summary.updated, "removed": summary.removed, "missing": summary.missing}

    def with_access(self, document: dict[str, Any] | None, headers: Mapping[str, str]) -> dict[str, Any] | None:
        """An answer about a table says how to access its store."""
        if document is None or "metadata" not in document:
            return document
        config, vended = dict(self.warehouse.config), dict(self.warehouse.vended)
        if "vended-credentials" not in headers.get("X-Iceberg-Access-Delegation", "") or not vended:
            return {**document, "config": config}
        if self.warehouse.in_config:
            return {**document, "config": {**config, **vended}}
        credentials = [{"prefix": self.warehouse.location, "config": vended}]
        return {**document, "config": config, "storage-credentials": credentials}

    def create(self, body: dict[str, Any], namespace: str) -> Answer:
        request = CreateTableRequest.model_validate({"location": None, **body})
        make = self.tables._create_staged_table if request.stage_create else self.tables.create_table
        spec = {"partition_spec": request.partition_spec} if request.partition_spec else {}
        order = {"sort_order": request.write_order} if request.write_order else {}
        more = {**spec, **order, "location": request.location, "properties": request.properties}
        return 200, _metadata(make((namespace, request.name), request.table_schema, **more))

    def listed(self, body: dict[str, Any], namespace: str) -> Answer:
        names = [name for *_, name in self.tables.list_tables(namespace)]
        return 200, {"identifiers": [{"namespace": [namespace], "name": name} for name in names]}

    def load(self, body: dict[str, Any], namespace: str, name: str) -> Answer:
        return 200, _metadata(self.tables.load_table((namespace, name)))

    def commit(self, body: dict[str, Any], namespace: str, name: str) -> Answer:
        body.setdefault("identifier", {"namespace": [namespace], "name": name})
        request = CommitTableRequest.model_validate(body)
        try:
            table = self.tables.load_table((namespace, name))
        except NoSuchTableError:
            table = StagedTable((namespace, name), None, "", None, self.tables)  # type: ignore[arg-type]
        try:
            done = self.tables.commit_table(table, request.requirements, request.updates)
        except ValueError as error:
            if "older than last sequence number" not in str(error):
                raise
            raise CommitFailedException(str(error)) from error  # as the Java library's own server answers
        return 200, _metadata(done)

    def drop(self, body: dict[str, Any], namespace: str, name: str) -> Answer:
        self.tables.drop_table((namespace, name))
        return 204, None


def _metadata(table: Any) -> dict[str, Any]:
    """``table``, or the answer to a commit."""
    return {"metadata-location": table.metadata_location, "metadata": json.loads(table.metadata.model_dump_json())}


def _error(status: int, error: Exception | None = None) -> Answer:
    kind = type(error).__name__.replace("Error", "Exception") if error else "Exception"
    return status, {"error": {"message": str(error or "refused"), "type": kind, "code": status}}


@contextlib.contextmanager
def rest_catalog(folder: Path, secret: str, warehouse: Warehouse | None = None) -> Iterator[str]:
    """Yields its URL. By default the warehouse is the folder."""
    catalog = Catalog(folder, secret, warehouse or Warehouse(str(folder)))

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            status, document = catalog.answer(self.command, path, self.headers, body)  # type: ignore[arg-type]
            content = b"" if document is None or self.command == "HEAD" else json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_HEAD = do_DELETE = handle_any

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        catalog.tables.close()
