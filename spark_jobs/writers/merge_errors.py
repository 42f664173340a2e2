"""A log that does not fit the rows: Spark says it as a failed expression, an operator needs other words."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from airflow_cdc_provider.core.errors import IntegrityBroken, Problem, RowMissing
from airflow_cdc_provider.core.table.merge_plan import AMBIGUOUS_KEY, CONFLICTING_CHANGES, NO_ROW

DATA = "nothing of the batch was applied; the change log keeps it"


@contextlib.contextmanager
def as_integrity_error(replicator: str, table: str, window: int) -> Iterator[None]:
    """Raise IntegrityBroken in place of an error that one of the marks stands in."""
    try:
        yield
    except Exception as error:  # py4j and PySpark wrap a failed task in unrelated classes; only the text tells
        where, resync = f"{table}, up to window {window}", f"airflow cdc resync {replicator} --table {table}"
        if NO_ROW in str(error):
            raise RowMissing(_no_row(where, resync)) from None
        if AMBIGUOUS_KEY in str(error):
            raise IntegrityBroken(_two_holders(where, resync)) from None
        if CONFLICTING_CHANGES in str(error):
            raise IntegrityBroken(_two_stories(where)) from None
        raise


def _no_row(where: str, resync: str) -> Problem:
    return Problem(
        "TGT031",
        "a change met no row in the target: rows were removed by somebody else",
        where,
        "an update or a delete without its row",
        do=resync,
        data=DATA,
    )


def _two_holders(where: str, resync: str) -> Problem:
    return Problem(
        "TGT036",
        "nobody can tell which of two rows holds a key at the end of a transaction",
        where,
        "two rows under one key, or a row that moved without all its columns while another one held its key",
        "a key that no two rows share when a transaction ends",
        f"{resync}; if that does not last, name another key in tables.key",
        DATA,
    )


def _two_stories(where: str) -> Problem:
    return Problem(
        "EVT012",
        "two changes of one row stand at one place of the source's log and say different things",
        where,
        "one key and one order key in two records of the change log, with two images",
        "events that come again as they were",
        "find out what wrote both, perhaps two connectors into one topic; have the table told again into a topic or "
        "folder of its own, and name that in the YAML",
        DATA,
    )
