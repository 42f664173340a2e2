"""Whether Spark's executors can access a folder of this worker, judged by the master's URL and the folder's mount."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePath

LOOPBACK = frozenset({"localhost", "[::1]"})
IN_MEMORY = frozenset({"tmpfs", "ramfs"})


def runs_on_this_host(master: str, own_names: Collection[str]) -> bool:
    """Whether executors run on this host: Spark in one process, or a standalone master on this machine."""
    if master.startswith("local"):
        return True
    scheme, _, rest = master.partition("://")
    hosts = [address.rpartition(":")[0] or address for address in rest.split(",")]
    return scheme == "spark" and all(_is_own(host.lower(), own_names) for host in hosts)


def why_not_shared(folder: str, mounts: str, temporary: str) -> str:
    """Why no other host can access the folder; empty if it may be shared. ``mounts``: the text of
    ``/proc/self/mountinfo``, empty on systems without it. ``temporary``: the folder for temporary files."""
    path = PurePath(folder)
    if path.is_relative_to(temporary):
        return "a temporary folder of this machine"
    types = dict(_parse_mount(line) for line in mounts.splitlines())
    point = max((point for point in types if path.is_relative_to(point)), key=len, default="")
    if types.get(point) in IN_MEMORY:
        return f"the memory of this machine, mounted at {point}"
    if point == "/" and "nfs" not in types[point]:
        return f"the system disk of this machine ({types[point]})"
    return ""


def _is_own(host: str, own_names: Collection[str]) -> bool:
    return host in LOOPBACK or host.startswith("127.") or host in {name.lower() for name in own_names}


def _parse_mount(line: str) -> tuple[str, str]:
    """Mount point and file system type of one line. Blanks in the mount point are octal escapes."""
    before, _, after = line.partition(" - ")
    point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), before.split(" ")[4])
    return point, after.split(" ")[0]
