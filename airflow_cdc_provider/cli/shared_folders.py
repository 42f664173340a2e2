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
    """One problem (ENV005) for staging and one for each target if their folder exists on this worker alone. Whether a
    network volume is mounted on the executors shows only when a job runs."""
    if runs_on_this_host(master, {socket.gethostname(), socket.getfqdn()}):
        return
    mounts = MOUNTS.read_text() if MOUNTS.exists() else ""
    key = "targets.location" if definition.targets else "target.location"
    for option, location in (
        ("staging.location", definition.staging.location),
        *((key, target.location) for target in definition.all_targets),
    ):
        parsed = parse_location(location)
        reason = (
            why_not_shared(parsed.path, mounts, tempfile.gettempdir()) if parsed.scheme == FOLDER and location else ""
        )
        if reason:
            yield Problem(
                "ENV005",
                "executors on other hosts cannot access this folder",
                where=f"{option} {location}",
                found=f"{reason}, and Spark at {master}",
                allowed="a folder that every worker and executor mounts, or a URL of an object store",
                do=f"move {option} to shared storage, or use a Spark master on this host in spark.connection",
            )
