"""The jars of the servers that the sandbox starts, as listed in ``jars.lock.json`` next to this file.

Spark jobs need none of them. ``python -m airflow_cdc_provider.sandbox.jars`` fills the cache; ``--lock`` updates the
checksums in the list.
"""

from __future__ import annotations

from pathlib import Path

from airflow_cdc_provider.jars import ensure, main

LOCK = Path(__file__).with_name("jars.lock.json")


def server_jars(*groups: str) -> list[Path]:
    """Raises the errors of ``jars.ensure``."""
    return ensure(groups, LOCK)


if __name__ == "__main__":
    main(LOCK, "airflow_cdc_provider.sandbox.jars")
