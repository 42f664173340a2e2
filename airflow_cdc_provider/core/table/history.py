"""The schema of a copy that keeps a history: the columns of the rows, and those of their versions or changes. Pure.

A version, or a change, is a row of its own: its key is the key of the source's row with ``SEQUENCE``, the order key of
the change that made it. So a history is merged like every table with a key.
"""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Origin, TableSchema

SEQUENCE = "_cdc_sequence"
VALID_FROM, VALID_TO, IS_CURRENT = "_cdc_valid_from", "_cdc_valid_to", "_cdc_is_current"
OPERATION, COMMIT_TIME, MISSING = "_cdc_operation", "_cdc_commit_time", "_cdc_missing_columns"
"""``MISSING``: a JSON list of the columns that the source did not send with the change; NULL if it sent all."""

TEXT, TIME = LogicalType(Kind.TEXT), LogicalType(Kind.TIMESTAMPTZ)
ADDED: dict[History, dict[str, LogicalType]] = {
    History.NONE: {},
    History.SCD2: {SEQUENCE: TEXT, VALID_FROM: TIME, VALID_TO: TIME, IS_CURRENT: LogicalType(Kind.BOOLEAN)},
    History.LOG: {SEQUENCE: TEXT, OPERATION: TEXT, COMMIT_TIME: TIME, MISSING: TEXT},
}
NAMES = frozenset(name for columns in ADDED.values() for name in columns)


def stored_schema(history: History, rows: TableSchema) -> TableSchema:
    """The schema of the target table for rows of a schema.

    A log grows at its end: with ``SEQUENCE`` as the first column of the key, a merge reads no older changes. A truncate
    is a change without a row, for which the source's key is NULL."""
    if history is History.NONE:
        return rows
    own = [
        replace(column, nullable=True) if history is History.LOG and column.name in rows.key else column
        for column in rows.columns
    ]
    added = [
        Column(name, kind, nullable=name != SEQUENCE, origin=Origin("", kind)) for name, kind in ADDED[history].items()
    ]
    key = (SEQUENCE, *rows.key) if history is History.LOG else (*rows.key, SEQUENCE)
    return replace(rows, columns=(*own, *added), key=key)


def row_schema(stored: TableSchema) -> TableSchema:
    """The opposite of ``stored_schema``."""
    if SEQUENCE not in stored.key:
        return stored
    columns = tuple(column for column in stored.columns if column.name not in NAMES)
    return replace(stored, columns=columns, key=tuple(name for name in stored.key if name != SEQUENCE))


def history_of(stored: TableSchema) -> History:
    """The history that a table of this schema has."""
    if SEQUENCE not in stored.key:
        return History.NONE
    return History.SCD2 if IS_CURRENT in stored.names else History.LOG
