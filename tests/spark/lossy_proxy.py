"""A proxy between us and a database that loses a COMMIT, or the answer to one."""

from __future__ import annotations

import re
import socket
import threading
from enum import StrEnum
from types import TracebackType

COMMIT = re.compile(rb"\x03COMMIT$|[^O]COMMIT\x00")
"""As MySQL's protocol and PostgreSQL's say it; ``SET AUTOCOMMIT`` is something else."""


class Lose(StrEnum):
    NOTHING = "nothing"
    ANSWER = "answer"
    REQUEST = "request"


class LossyProxy:
    """Listens on loopback at ``port``. ``lose``: what it loses of the next COMMIT, once."""

    def __init__(self, port: int) -> None:
        self.server = port
        self.lose = Lose.NOTHING
        self.lost = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> LossyProxy:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()

    def _accept(self) -> None:
        while True:
            try:
                ours, _ = self.listener.accept()
            except OSError:
                return
            theirs = socket.create_connection(("127.0.0.1", self.server))
            threading.Thread(target=self._requests, args=(ours, theirs), daemon=True).start()
            threading.Thread(target=_pass_on, args=(theirs, ours), daemon=True).start()

    def _requests(self, ours: socket.socket, theirs: socket.socket) -> None:
        while data := _receive(ours):
            if COMMIT.search(data) and self.lose is not Lose.NOTHING:
                lose, self.lose = self.lose, Lose.NOTHING
                self.lost += 1
                # Nothing more reaches our side; the server still gets the request, or only the end of the connection.
                ours.shutdown(socket.SHUT_RDWR)
                if lose is Lose.ANSWER:
                    theirs.sendall(data)
                break
            theirs.sendall(data)
        _close_for_writing(theirs)
        ours.close()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    while data := _receive(source):
        try:
            sink.sendall(data)
        except OSError:
            break
    _close_for_writing(sink)
    source.close()


def _receive(one: socket.socket) -> bytes:
    try:
        return one.recv(65536)
    except OSError:
        return b""


def _close_for_writing(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_WR)
    except OSError:
        return
