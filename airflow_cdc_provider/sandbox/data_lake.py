"""A stand-in for the Data Lake endpoint of an Azure account with hierarchical namespace, on loopback: the requests by
which Hadoop writes, reads and renames files, as Microsoft documents them. It verifies no signatures.

    python -m airflow_cdc_provider.sandbox.data_lake PORT
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer


@dataclass
class Node:
    """A file, or a folder."""

    is_folder: bool
    content: bytes = b""
    pending: bytes = b""
    etag: str = field(default_factory=lambda: f'"{time.time_ns():x}"')
    modified: str = field(default_factory=lambda: formatdate(usegmt=True))


class Refused(Exception):
    """``args``: status and error code."""


class Lake:
    """Files and folders by their path in a file system. Every method is atomic."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {"": Node(is_folder=True)}
        self.lock = threading.Lock()

    def get(self, path: str) -> Node:
        with self.lock:
            if path not in self.nodes:
                raise Refused(404, "PathNotFound")
            return self.nodes[path]

    def create(self, path: str, is_folder: bool, only_new: bool) -> Node:
        with self.lock:
            if path in self.nodes and only_new:
                raise Refused(409, "PathAlreadyExists")
            return self._put(path, Node(is_folder))

    def rename(self, source: str, path: str, only_new: bool) -> None:
        with self.lock:
            if source not in self.nodes:
                raise Refused(404, "SourcePathNotFound")
            if path in self.nodes and only_new:
                raise Refused(409, "PathAlreadyExists")
            for below in [one for one in self.nodes if one == source or one.startswith(f"{source}/")]:
                self._put(path + below.removeprefix(source), self.nodes.pop(below))

    def append(self, path: str, content: bytes) -> None:
        node = self.get(path)
        with self.lock:
            node.pending += content

    def flush(self, path: str) -> Node:
        node = self.get(path)
        with self.lock:
            node.content, node.pending, node.etag = node.content + node.pending, b"", f'"{time.time_ns():x}"'
            return node

    def delete(self, path: str) -> None:
        self.get(path)
        with self.lock:
            for below in [one for one in self.nodes if one == path or one.startswith(f"{path}/")]:
                del self.nodes[below]

    def children(self, folder: str) -> list[tuple[str, Node]]:
        self.get(folder)
        prefix = f"{folder}/" if folder else ""
        with self.lock:
            names = sorted(one for one in self.nodes if one.startswith(prefix) and "/" not in one[len(prefix) :])
            return [(name, self.nodes[name]) for name in names if name != folder]

    def _put(self, path: str, node: Node) -> Node:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            self.nodes.setdefault("/".join(parts[:depth]), Node(is_folder=True))
        self.nodes[path] = node
        return node


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lake = Lake()

    def answer(self) -> None:
        """``/<account>/<file system>/<path>``."""
        address = urlsplit(self.path)
        path = unquote("/".join(address.path.split("/")[3:])).strip("/")
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            status, node, body = self._carry_out(path, query, content)
        except Refused as error:
            status, code = error.args
            self._send(status, {"x-ms-error-code": code}, json.dumps({"error": {"code": code}}).encode())
            return
        self._send(status, _headers(node) if node else {}, body)

    do_GET = do_HEAD = do_PUT = do_PATCH = do_DELETE = answer

    def _carry_out(self, path: str, query: dict[str, str], content: bytes) -> tuple[int, Node | None, bytes]:
        lake, only_new = self.lake, self.headers.get("If-None-Match") == "*"
        match self.headers.get("X-HTTP-Method-Override", self.command), query:
            case "HEAD", _:
                return 200, lake.get(path), b""
            case "GET", {"resource": "filesystem"}:
                entries = [_entry(name, node) for name, node in lake.children(unquote(query.get("directory", "")))]
                return 200, None, json.dumps({"paths": entries}).encode()
            case "GET", _:
                node = lake.get(path)
                first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
                return 206, node, node.content[int(first) : int(last) + 1 if last else None]
            case "PUT", {"resource": ("file" | "directory") as kind}:
                return 201, lake.create(path, kind == "directory", only_new), b""
            case "PUT", _:
                source = unquote(self.headers["x-ms-rename-source"]).lstrip("/").partition("?")[0]
                lake.rename(source.partition("/")[2], path, only_new)
                return 201, None, b""
            case "PATCH", {"action": "append"}:
                lake.append(path, content)
                if query.get("flush") != "true":
                    return 202, None, b""
                return 200, lake.flush(path), b""
            case "PATCH", {"action": "flush"}:
                return 200, lake.flush(path), b""
            case "DELETE", _:
                lake.delete(path)
                return 200, None, b""
        raise Refused(400, "UnsupportedQueryParameter")

    def _send(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _headers(node: Node) -> dict[str, str]:
    kind = "directory" if node.is_folder else "file"
    access = {"x-ms-owner": "o", "x-ms-group": "g", "x-ms-permissions": "rwxr-x---", "x-ms-acl": "user::rwx"}
    size = {"Content-Length": str(len(node.content))}
    return {"ETag": node.etag, "Last-Modified": node.modified, "x-ms-resource-type": kind, **access, **size}


def _entry(name: str, node: Node) -> dict[str, str]:
    folder = {"isDirectory": "true"} if node.is_folder else {}
    size = str(len(node.content))
    return {"name": name, "contentLength": size, "lastModified": node.modified, "etag": node.etag, **folder}


class Server(ThreadingHTTPServer):
    daemon_threads = True


class EmbeddedDataLake(EmbeddedServer):
    """Its files end with the server."""

    name = "DataLake"
    account: ClassVar[str] = "cdcstandin"

    def __init__(self) -> None:
        super().__init__()
        (self.port,) = free_ports(1)

    def at(self, address: str) -> ConnectionInfo:
        """A connection of type ``adls`` to this address, ``http://host:port``."""
        return ConnectionInfo("lake", f"{address}/{self.account}", login=self.account, password="a2V5")

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "airflow_cdc_provider.sandbox.data_lake", str(self.port)]

    def _is_ready(self) -> bool:
        return is_open(self.port)


if __name__ == "__main__":
    Server((HOST, int(sys.argv[1])), Handler).serve_forever()
