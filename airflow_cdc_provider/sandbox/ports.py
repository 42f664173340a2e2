"""Ports on loopback: free ones, and whether a server listens on one."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """Different free ports, chosen by the kernel."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def is_open(port: int) -> bool:
    """Whether the port accepts a connection."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
