"""A socket for the driver that encrypts a connection by Python's own TLS, with a verified host.

The driver's own TLS cannot verify the names of most certificates. Here the driver believes that there is none: its
PRELOGIN packet is changed to require encryption, the handshake follows in PRELOGIN packets, and the answer says that
the server does not support encryption. All later bytes are encrypted (MS-TDS 2.2.6.5, 3.2.5.1)."""

from __future__ import annotations

import socket
import ssl

PRELOGIN = 0x12
HEADER_BYTES = 8
OPTION_BYTES = 5
ENCRYPTION, TERMINATOR = 1, 0xFF
ENCRYPT_ON, NOT_SUPPORTED, REQUIRED = 1, 2, 3
LAST_PACKET = 1
READ_BYTES = 65536


class TlsSocket:
    """What the driver uses of a socket. Raises ssl.SSLError if the server's certificate is not verified, OSError if the
    server does not encrypt; the login has not been sent then."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext, host: str) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._encrypted = False
        self._received = b""

    def sendall(self, data: bytes | bytearray | memoryview, flags: int = 0) -> None:
        if not self._encrypted:
            self._begin(bytes(data))
            return
        self._tls.write(bytes(data))
        self._connection.sendall(self._outgoing.read())

    def recv(self, size: int, flags: int = 0) -> bytes:
        if self._received:
            data, self._received = self._received[:size], self._received[size:]
            return data
        while True:
            try:
                return self._tls.read(size)
            except ssl.SSLWantReadError:
                data = self._connection.recv(READ_BYTES)
                if not data:
                    return b""
                self._incoming.write(data)

    def recv_into(self, buffer: bytearray | memoryview, size: int = 0, flags: int = 0) -> int:
        data = self.recv(size or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def gettimeout(self) -> float | None:
        return self._connection.gettimeout()

    def settimeout(self, timeout: float | None) -> None:
        self._connection.settimeout(timeout)

    def setsockopt(self, level: int, option: int, value: int) -> None:
        self._connection.setsockopt(level, option, value)

    def close(self) -> None:
        self._connection.close()

    def _begin(self, packet: bytes) -> None:
        """The driver's PRELOGIN, the handshake, and the answer for the driver."""
        self._connection.sendall(packet[:HEADER_BYTES] + with_encryption(packet[HEADER_BYTES:], ENCRYPT_ON))
        header, answer = self._packet()
        if encryption_of(answer) not in (ENCRYPT_ON, REQUIRED):
            raise OSError("the server does not support TLS")
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send_handshake()
                self._incoming.write(self._packet()[1])
        self._send_handshake()
        self._encrypted = True
        self._received = header + with_encryption(answer, NOT_SUPPORTED)

    def _send_handshake(self) -> None:
        if data := self._outgoing.read():
            length = (len(data) + HEADER_BYTES).to_bytes(2)
            self._connection.sendall(bytes([PRELOGIN, LAST_PACKET]) + length + b"\0\0\0\0" + data)

    def _packet(self) -> tuple[bytes, bytes]:
        header = self._exactly(HEADER_BYTES)
        return header, self._exactly(int.from_bytes(header[2:4]) - HEADER_BYTES)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self._connection.recv(size - len(data))
            if not more:
                raise OSError("the server has ended the connection")
            data += more
        return data


def encryption_of(prelogin: bytes) -> int:
    return prelogin[_offset(prelogin)]


def with_encryption(prelogin: bytes, value: int) -> bytes:
    at = _offset(prelogin)
    return prelogin[:at] + bytes([value]) + prelogin[at + 1 :]


def _offset(prelogin: bytes) -> int:
    """Of the byte of the option ENCRYPTION."""
    for at in range(0, len(prelogin), OPTION_BYTES):
        if prelogin[at] == TERMINATOR:
            break
        if prelogin[at] == ENCRYPTION:
            return int.from_bytes(prelogin[at + 1 : at + 3])
    raise OSError("the PRELOGIN packet has no option ENCRYPTION")
