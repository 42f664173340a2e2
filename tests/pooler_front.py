"""A pooler before a PostgreSQL, as far as its clients notice one: it passes sessions on, but none for replication."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType

HOST = "127.0.0.1"
NO_ENCRYPTION = frozenset({80877103, 80877104})
REFUSAL = "unsupported startup parameter: replication"


class PoolerFront:
    """``port``: where it listens."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server((HOST, 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> PoolerFront:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client:
            start = _message(client)
            while struct.unpack("!i", start[4:8])[0] in NO_ENCRYPTION:
                client.sendall(b"N")
                start = _message(client)
            if b"\0replication\0" in start:
                fields = b"".join(
                    code + text.encode() + b"\0" for code, text in ((b"S", "FATAL"), (b"C", "08P01"), (b"M", REFUSAL))
                )
                client.sendall(b"E" + struct.pack("!i", len(fields) + 5) + fields + b"\0")
                return
            with socket.create_connection((HOST, self._server_port)) as server:
                server.sendall(start)
                back = threading.Thread(target=_pump, args=(server, client), daemon=True)
                back.start()
                _pump(client, server)
                back.join()


def _message(client: socket.socket) -> bytes:
    head = client.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        raise OSError("closed")
    return head + client.recv(struct.unpack("!i", head)[0] - 4, socket.MSG_WAITALL)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
