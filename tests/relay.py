"""A relay between a client and an object store that disturbs requests. It forwards bytes; the head of a request is
expected in one piece, as clients send it."""

from __future__ import annotations

import multiprocessing
import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import unquote

from tests.waiting import until

HEAD = re.compile(rb"([A-Z]+) (\S+) HTTP/1\.1\r\n(.*?)\r\n\r\n", re.DOTALL)
CONDITION = re.compile(rb"(?i)\r\n(if-none-match|x-goog-if-generation-match):")
REFUSAL = b"<Error><Code>AccessDenied</Code></Error>"
HOLD_LIMIT_S = 60

Requests = Callable[[str, str, Mapping[str, str]], bool]
"""Chooses requests by their method, path and headers; names of headers are in lower case."""


def is_conditional(method: str, path: str, headers: Mapping[str, str]) -> bool:
    return "if-none-match" in headers or "x-goog-if-generation-match" in headers


def names_commit(method: str, path: str, headers: Mapping[str, str]) -> bool:
    """Whether a request gives a file of Delta's log its name: a conditional PUT, the end of an upload to Cloud Storage,
    or the copy by which Azure renames."""
    if path.startswith("/upload/"):
        return "_delta_log" in path or "upload_id" in path
    is_commit = "_delta_log" in path and ".json" in path and ".tmp" not in path
    return method == "PUT" and is_commit and is_conditional(method, path, headers)


class Relay:
    """In a process of its own, because deltalake does not let other Python threads run while it waits for a store.
    ``forgetful``: makes the store ignore the conditions of requests. ``refusing``: answers 403. ``chosen``: the
    requests that ``losing`` and ``holding`` are about. ``losing``: to how many of them the answers, although the store
    has carried them out, do not reach the client. ``holding``: they ``arrive`` and wait until they are ``released``."""

    def __init__(self, address: str, chosen: Requests, forgetful: bool, refusing: bool) -> None:
        host, _, port = address.removeprefix("http://").partition(":")
        context = multiprocessing.get_context("spawn")
        self.store = (host, int(port))
        self.chosen, self.forgetful, self.refusing = chosen, forgetful, refusing
        self.losing = context.Value("i", 0)
        self.holding, self.arrived, self.released = context.Event(), context.Event(), context.Event()
        self.port = context.Value("i", 0)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port.value}"

    def serve(self) -> None:
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            self.port.value = listener.getsockname()[1]
            while True:
                client, _ = listener.accept()
                threading.Thread(target=Connection(self, client).run, daemon=True).start()

    def loses(self) -> bool:
        with self.losing.get_lock():
            is_lost = self.losing.value > 0
            self.losing.value -= is_lost
        return is_lost


class Connection:
    def __init__(self, relay: Relay, client: socket.socket) -> None:
        self._relay = relay
        self._client = client
        self._store = socket.create_connection(relay.store)
        self._is_lost = False
        """The connection ends with the next answer of the store."""

    def run(self) -> None:
        threading.Thread(target=self._forward_answers, daemon=True).start()
        with suppress(OSError):
            while data := self._client.recv(1 << 16):
                self._store.sendall(self._disturbed(data))
        self._close()

    def _disturbed(self, data: bytes) -> bytes:
        match = HEAD.match(data)
        if match is None:
            return data
        method, path, fields = (part.decode("latin-1") for part in match.groups())
        pairs = (line.partition(":") for line in fields.split("\r\n"))
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        if self._relay.refusing:
            head = f"HTTP/1.1 403 Forbidden\r\nContent-Length: {len(REFUSAL)}\r\nConnection: close\r\n\r\n"
            self._client.sendall(head.encode() + (REFUSAL if method != "HEAD" else b""))
            raise ConnectionAbortedError
        if self._relay.chosen(method, unquote(path), headers):
            self._is_lost = self._relay.loses()
            if self._relay.holding.is_set():
                self._relay.arrived.set()
                self._relay.released.wait(HOLD_LIMIT_S)
        return CONDITION.sub(rb"\r\nx-ignored-\1:", data) if self._relay.forgetful else data

    def _forward_answers(self) -> None:
        with suppress(OSError):
            while data := self._store.recv(1 << 16):
                if self._is_lost and not data.startswith(b"HTTP/1.1 100"):
                    break
                self._client.sendall(data)
        self._close()

    def _close(self) -> None:
        for one in (self._client, self._store):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


@contextmanager
def relay_to(
    address: str, chosen: Requests = is_conditional, forgetful: bool = False, refusing: bool = False
) -> Iterator[Relay]:
    """``address``: ``http://host:port`` of the store."""
    relay = Relay(address, chosen, forgetful, refusing)
    process = multiprocessing.get_context("spawn").Process(target=relay.serve, daemon=True)
    process.start()
    until(lambda: relay.port.value != 0, "the port of the relay")
    yield relay
    process.kill()
    process.join()
