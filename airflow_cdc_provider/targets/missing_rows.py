"""A change whose row the target lacks."""

from __future__ import annotations

from airflow_cdc_provider.core.errors import RowMissing
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.source_names import in_shell


def row_missing(replicator: str, table: str, where: str) -> RowMissing:
    return RowMissing.of(
        "TGT031",
        "the target lacks the row of a change: rows were removed by another writer",
        where,
        "an update or a delete without its row",
        do=f"airflow cdc resync {replicator} --table {in_shell(table)}",
        data="nothing of the batch was applied; the change log keeps it",
    )


def row_missing_in(location: str, record: ControlRecord) -> RowMissing:
    """``record``: that of the commit."""
    where = f"{record.table} at {location}, up to window {record.window}"
    return row_missing(record.replicator, record.table, where)
