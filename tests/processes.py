"""Whether a process runs."""

from __future__ import annotations

from pathlib import Path


def is_running(pid: int) -> bool:
    """A process that ended counts as ended before its parent collects it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
