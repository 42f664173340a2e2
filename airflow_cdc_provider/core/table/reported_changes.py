"""What a source reports of the changes of a table that are no changes of rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.table.schema_changes import ChangeKind


class TableChange(StrEnum):
    """A change as it is made at the source. ``filled_column``: a new column with one value in all existing rows.
    ``replace_column``: a column is dropped, and another one added under its name. ``rewrite``: a statement computes
    other values of the same type, as ``ALTER … TYPE … USING`` does."""

    ADD_COLUMN = "add_column"
    FILLED_COLUMN = "filled_column"
    DROP_COLUMN = "drop_column"
    REPLACE_COLUMN = "replace_column"
    RENAME_COLUMN = "rename_column"
    WIDEN = "widen"
    NARROW = "narrow"
    REWRITE = "rewrite"
    CHANGE_KEY = "change_key"
    TRUNCATE = "truncate"
    RENAME_TABLE = "rename_table"


class Report(StrEnum):
    """How a run learns of a change. No row of the copy is wrong before the policy or an operator has decided, except
    under ``partial`` and ``none``.

    ``stream``: the stream contains it in the order of the rows, a renamed column or table with its identity.
    ``name``: the stream contains names only, so that a rename looks like a dropped and an added column.
    ``partial``: as ``stream``, without the values of existing rows.
    ``snapshot``: as ``stream``, but only another snapshot, which the source sends by itself, applies the change.
    ``catalog``: the catalog shows it, and its place among the changes of rows is unknown: only another copy applies it.
    ``rows``: rows changed that the stream does not contain: another copy, whatever the policy.
    ``compared``: likewise, if a comparison of the rows on both sides shows that they differ.
    ``hole``: likewise, and the change log contains the position.
    ``bad_record``: its records cannot be decoded.
    ``new_table``: as a table that is dropped, and a new one.
    ``none``: not at all. ``impossible``: the source does not have it."""

    STREAM = "stream"
    NAME = "name"
    PARTIAL = "partial"
    SNAPSHOT = "snapshot"
    CATALOG = "catalog"
    ROWS = "rows"
    COMPARED = "compared"
    HOLE = "hole"
    BAD_RECORD = "bad_record"
    NEW_TABLE = "new_table"
    NONE = "none"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True)
class ReportedChanges:
    """What a source declares; by default that it does not report a change."""

    add_column: Report = Report.NONE
    filled_column: Report = Report.NONE
    drop_column: Report = Report.NONE
    replace_column: Report = Report.NONE
    rename_column: Report = Report.NONE
    widen: Report = Report.NONE
    narrow: Report = Report.NONE
    rewrite: Report = Report.NONE
    change_key: Report = Report.NONE
    truncate: Report = Report.NONE
    rename_table: Report = Report.NONE

    def of(self, change: TableChange) -> Report:
        report: Report = getattr(self, change.value)
        return report


def policy_key(change: TableChange, report: Report) -> ChangeKind | None:
    """The key of ``schema_changes`` that decides; None if none does."""
    if report is Report.CATALOG:
        return ChangeKind.NARROW
    return KEYS[change] if report in IN_STREAM else None


IN_STREAM = frozenset({Report.STREAM, Report.NAME, Report.PARTIAL, Report.SNAPSHOT})
KEYS: dict[TableChange, ChangeKind] = {
    TableChange.ADD_COLUMN: ChangeKind.ADD_COLUMN,
    TableChange.FILLED_COLUMN: ChangeKind.ADD_COLUMN,
    TableChange.DROP_COLUMN: ChangeKind.DROP_COLUMN,
    TableChange.REPLACE_COLUMN: ChangeKind.NARROW,
    TableChange.RENAME_COLUMN: ChangeKind.RENAME,
    TableChange.WIDEN: ChangeKind.WIDEN,
    TableChange.NARROW: ChangeKind.NARROW,
    TableChange.REWRITE: ChangeKind.NARROW,
    TableChange.CHANGE_KEY: ChangeKind.CHANGE_KEY,
    TableChange.TRUNCATE: ChangeKind.TRUNCATE,
    TableChange.RENAME_TABLE: ChangeKind.RENAME,
}
