"""Folders that executors on other hosts cannot reach."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.storage.locations import FOLDER, parse_location
from airflow_cdc_provider.core.storage.sharing import runs_on_this_host, why_not_shared

MOUNTS = Path("/proc/self/mountinfo")


def unshared(definition: Definition, master: str) -> Iterator[Problem]:
    """One problem (ENV005) for staging and for the target where they stand on this worker alone. Whether a volume that
    may be mounted elsewhere really is, only the jobs can tell."""
    if runs_on_this_host(master, {socket.gethostname(), socket.getfqdn()}):
        return
    mounts = MOUNTS.read_text() if MOUNTS.exists() else ""
    for where, location in (
        ("staging.location", definition.staging.location),
        ("target.location", definition.target.location),
    ):
        place = parse_location(location)
        why = why_not_shared(place.path, mounts, tempfile.gettempdir()) if place.scheme == FOLDER and location else ""
        if why:
            yield Problem(
                "ENV005",
                "executors elsewhere cannot reach this folder",
                where=f"{where} {location}",
                found=f"{why}, and Spark at {master}",
                allowed="a folder that every worker and executor mounts, or a URL of an object store",
                do=f"put {where} on shared storage, or let spark.connection name a master on this machine",
            )
