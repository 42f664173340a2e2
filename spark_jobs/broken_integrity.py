"""A change that met no row: Spark says it as a failed expression, an operator needs other words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from airflow_cdc_provider.core.errors import IntegrityBroken, Problem
from airflow_cdc_provider.core.merge import NO_ROW


@contextlib.contextmanager
def missing_rows_break_integrity(replicator: str, table: str, window: int) -> Iterator[None]:
    """Raise IntegrityBroken in place of the error that the marker ``NO_ROW`` stands in."""
    try:
        yield
    except Exception as error:  # py4j and PySpark wrap a failed task in unrelated classes; only the text tells
        if NO_ROW not in str(error):
            raise
        raise IntegrityBroken(
            Problem(
                "TGT031",
                "a change met no row in the target: rows were removed by somebody else",
                where=f"{table}, up to window {window}",
                found="an update or a delete without its row",
                do=f"airflow cdc resync {replicator} --table {table}",
                data="nothing of the batch was applied; the change log keeps it",
            )
        ) from None
