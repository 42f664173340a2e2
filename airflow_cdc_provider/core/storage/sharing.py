"""Whether Spark's executors can see a folder of this worker, as far as the master's URL and the folder's mount tell."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePath

LOOPBACK = frozenset({"localhost", "[::1]"})
IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def runs_on_this_host(master: str, own_names: Collection[str]) -> bool:
    """Executors run on this host, or may do so: Spark in one process, or a standalone master on this very machine."""
    if master.startswith("local"):
        return True
    scheme, _, rest = master.partition("://")
    hosts = [address.rpartition(":")[0] or address for address in rest.split(",")]
    return scheme == "spark" and all(_is_own(host.lower(), own_names) for host in hosts)


def why_not_shared(folder: str, mounts: str, temporary: str) -> str:
    """Why no other host can have the folder; empty where it may be mounted there, too. ``mounts`` is the text of
    ``/proc/self/mountinfo``, empty where the system has none; ``temporary`` the folder for temporary files."""
    path = PurePath(folder)
    if path.is_relative_to(temporary):
        return "a temporary folder of this machine"
    kinds = dict(_mount(line) for line in mounts.splitlines())
    point = max((point for point in kinds if path.is_relative_to(point)), key=len, default="")
    if kinds.get(point) in IN_MEMORY:
        return f"the memory of this machine, mounted at {point}"
    if point == "/" and "nfs" not in kinds[point]:
        return f"the system disk of this machine ({kinds[point]})"
    return ""


def _is_own(host: str, own_names: Collection[str]) -> bool:
    return host in LOOPBACK or host.startswith("127.") or host in {name.lower() for name in own_names}


def _mount(line: str) -> tuple[str, str]:
    """Mount point and kind of file system of one line; blanks in the former are written as octal escapes."""
    before, _, after = line.partition(" - ")
    point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), before.split(" ")[4])
    return point, after.split(" ")[0]
