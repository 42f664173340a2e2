"""The size of parts of the change log. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_cdc_provider.core.log.change_log import Manifest


def log_bytes(manifests: Mapping[int, Manifest], table: str, after: int, until: int) -> int:
    """Bytes of the records of ``table``, a source table, in the windows behind ``after`` up to ``until``; windows that
    are not in ``manifests`` count as empty."""
    slices = (one.tables.get(table) for window, one in manifests.items() if after < window <= until)
    return sum(file.bytes for part in slices if part for file in part.files)
