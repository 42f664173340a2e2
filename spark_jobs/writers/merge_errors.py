"""Translates errors of Spark expressions that detect an inconsistent log into errors for an operator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from airflow_cdc_provider.core.errors import IntegrityBroken, Problem
from airflow_cdc_provider.core.table.merge_plan import AMBIGUOUS_KEY, CONFLICTING_CHANGES, NO_ROW
from airflow_cdc_provider.core.table.source_names import in_shell
from airflow_cdc_provider.targets.missing_rows import row_missing

DATA = "nothing of the batch was applied; the change log keeps it"


@contextlib.contextmanager
def as_integrity_error(replicator: str, table: str, window: int) -> Iterator[None]:
    """Raise RowMissing or IntegrityBroken instead of an error whose text contains one of the markers."""
    try:
        yield
    except Exception as error:  # py4j and PySpark wrap a failed task in unrelated classes, so the text decides
        where, resync = f"{table}, up to window {window}", f"airflow cdc resync {replicator} --table {in_shell(table)}"
        if NO_ROW in str(error):
            raise row_missing(replicator, table, where) from None
        if AMBIGUOUS_KEY in str(error):
            raise IntegrityBroken(_ambiguous_key(where, resync)) from None
        if CONFLICTING_CHANGES in str(error):
            raise IntegrityBroken(_conflicting_records(where)) from None
        raise


def _ambiguous_key(where: str, resync: str) -> Problem:
    return Problem(
        "TGT036",
        "it is ambiguous which of two rows has a key at the end of a transaction",
        where,
        "two rows with one key, or a row that moved to the key of another row and lacks some of its columns",
        "a key that is unique at the end of every transaction",
        f"{resync}; if the error returns, choose another key in tables.key",
        DATA,
    )


def _conflicting_records(where: str) -> Problem:
    return Problem(
        "EVT012",
        "two changes of one row have the same position in the source's log and different contents",
        where,
        "two records in the change log with the same key and order key, and different images",
        "repeated events that are identical",
        "find out what wrote both events, e.g. two connectors that write to one topic; read the table from a topic or "
        "folder of its own, and name that in the YAML",
        DATA,
    )
