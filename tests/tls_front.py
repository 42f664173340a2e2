"""TLS in front of the embedded PostgreSQL, whose binaries are built without it.

A client sends a request of eight bytes for TLS; the answer is one letter, then the handshake begins.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from airflow_cdc_provider.sandbox.server import HOST

SSL_REQUEST = bytes.fromhex("0000000804d2162f")


@contextmanager
def tls_front(port: int, certificate: Path, key: Path) -> Iterator[int]:
    """A port that accepts only TLS, for the server at ``port``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server((HOST, 0)) as listener:
        accepting = threading.Thread(target=_accept, args=(listener, context, port))
        accepting.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


def _accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_serve, args=(client, context, port), daemon=True).start()


def _serve(client: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError), client:
        if client.recv(len(SSL_REQUEST), socket.MSG_WAITALL) != SSL_REQUEST:
            return
        client.sendall(b"S")
        with context.wrap_socket(client, server_side=True) as safe, socket.create_connection((HOST, port)) as server:
            back = threading.Thread(target=_pump, args=(server, safe), daemon=True)
            back.start()
            _pump(safe, server)
            back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
