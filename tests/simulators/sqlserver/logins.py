"""A server that speaks TDS up to the login: PRELOGIN, the TLS handshake within it, and a login that fails."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from airflow_cdc_provider.sandbox.server import HOST

PRELOGIN, TABULAR, LAST = 0x12, 0x04, 0x01
VERSION, ENCRYPTION, TERMINATOR = 0, 1, 0xFF
ENCRYPT_ON, NOT_SUPPORTED = 1, 2
ERROR, DONE = 0xAA, 0xFD
LOGIN_FAILED = 18456


@dataclass
class Logins:
    """``received``: the bytes of each login, as text that contains what is not encoded."""

    port: int
    received: list[bytes] = field(default_factory=list)


@contextmanager
def login_server(certificate: Path | None = None, key: Path | None = None) -> Iterator[Logins]:
    """With a certificate, it requires TLS."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    with socket.create_server((HOST, 0)) as listener:
        logins = Logins(listener.getsockname()[1])
        accepting = threading.Thread(target=_accept, args=(listener, context, logins))
        accepting.start()
        yield logins
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()


def _accept(listener: socket.socket, context: ssl.SSLContext | None, logins: Logins) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            with suppress(OSError, ssl.SSLError), client:
                _serve(client, context, logins)


def _serve(client: socket.socket, context: ssl.SSLContext | None, logins: Logins) -> None:
    _packet(client)
    client.sendall(_framed(TABULAR, _prelogin(ENCRYPT_ON if context else NOT_SUPPORTED)))
    if context is None:
        logins.received.append(_packet(client))
        client.sendall(_framed(TABULAR, _failed()))
        return
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_side=True)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            if reply := outgoing.read():
                client.sendall(_framed(PRELOGIN, reply))
            incoming.write(_packet(client))
    client.sendall(_framed(PRELOGIN, outgoing.read()))
    while True:
        try:
            logins.received.append(tls.read(65536))
            break
        except ssl.SSLWantReadError:
            incoming.write(_some(client))
    tls.write(_framed(TABULAR, _failed()))
    client.sendall(outgoing.read())


def _prelogin(encryption: int) -> bytes:
    start = 2 * 5 + 1
    options = struct.pack(">BHH", VERSION, start, 6) + struct.pack(">BHH", ENCRYPTION, start + 6, 1)
    return options + bytes([TERMINATOR]) + bytes([16, 0, 0, 0, 0, 0]) + bytes([encryption])


def _failed() -> bytes:
    text = "Login failed for user 'cdc'."
    message = struct.pack("<H", len(text)) + text.encode("utf-16-le") + b"\0\0" + struct.pack("<L", 1)
    body = struct.pack("<LBB", LOGIN_FAILED, 1, 14) + message
    return bytes([ERROR]) + struct.pack("<H", len(body)) + body + bytes([DONE]) + struct.pack("<HHQ", 2, 0, 0)


def _framed(kind: int, content: bytes) -> bytes:
    return struct.pack(">BBHHBB", kind, LAST, len(content) + 8, 0, 1, 0) + content


def _some(client: socket.socket) -> bytes:
    if not (data := client.recv(65536)):
        raise OSError("the client has ended the connection")
    return data


def _packet(client: socket.socket) -> bytes:
    header = client.recv(8, socket.MSG_WAITALL)
    if len(header) < 8:
        raise OSError("the client has ended the connection")
    return client.recv(int.from_bytes(header[2:4]) - 8, socket.MSG_WAITALL)
