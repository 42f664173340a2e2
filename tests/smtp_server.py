"""An SMTP server that keeps what it receives."""

from __future__ import annotations

import contextlib
import email
import email.policy
import socketserver
from collections.abc import Iterator
from email.message import EmailMessage
from threading import Thread


class _Handler(socketserver.StreamRequestHandler):
    server: SmtpServer

    def handle(self) -> None:
        self._say("220 mail")
        while line := self.rfile.readline().decode().strip().upper():
            if line.startswith("DATA"):
                self._say("354 go on")
                self.server.received.append(self._message())
                self._say("250 kept")
            elif line.startswith("QUIT"):
                self._say("221 bye")
                return
            else:
                self._say("250 mail")

    def _message(self) -> EmailMessage:
        lines = iter(self.rfile.readline, b".\r\n")
        body = b"".join(line.removeprefix(b".") if line.startswith(b"..") else line for line in lines)
        return email.message_from_bytes(body, policy=email.policy.default)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class SmtpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.received: list[EmailMessage] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextlib.contextmanager
def smtp_server() -> Iterator[SmtpServer]:
    with SmtpServer() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
