"""What each source reports of a schema change, as its class declares it, and what a table does then."""

from __future__ import annotations

from airflow_cdc_provider.connectors import FORMATS, SOURCES
from airflow_cdc_provider.connectors.source_features import HasComments, ReportsChanges, ReportsStatements
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.table.reported_changes import IN_STREAM, Report, ReportedChanges, TableChange, policy_key

TITLES = {
    TableChange.ADD_COLUMN: "a new column, NULL in existing rows",
    TableChange.FILLED_COLUMN: "a new column with a constant default",
    TableChange.DROP_COLUMN: "a dropped column",
    TableChange.REPLACE_COLUMN: "a column dropped and added again",
    TableChange.RENAME_COLUMN: "a renamed column",
    TableChange.WIDEN: "a wider type",
    TableChange.NARROW: "another type",
    TableChange.REWRITE: "other values of the same type by a statement",
    TableChange.CHANGE_KEY: "another key",
    TableChange.TRUNCATE: "`TRUNCATE`",
    TableChange.RENAME_TABLE: "a renamed table",
}
REPORTS = {
    Report.STREAM: "stream",
    Report.NAME: "names only",
    Report.PARTIAL: "values missing",
    Report.SNAPSHOT: "snapshot",
    Report.CATALOG: "catalog",
    Report.ROWS: "rows",
    Report.COMPARED: "comparison",
    Report.HOLE: "hole",
    Report.BAD_RECORD: "bad record",
    Report.NEW_TABLE: "new table",
    Report.NONE: "**not at all**",
    Report.IMPOSSIBLE: "",
}
MEANINGS = {
    Report.STREAM: "the stream contains the change between those of rows; a renamed column or table has an identity",
    Report.NAME: "a rename looks like a dropped column and an added one",
    Report.PARTIAL: "the stream contains the new column, but **not its values in existing rows**",
    Report.SNAPSHOT: "the stream contains the change; a new snapshot by the connector, and a resync, apply it",
    Report.CATALOG: "the catalog shows the change, and only another copy applies it; the key is `narrow`",
    Report.ROWS: "rows have other values that the stream does not contain",
    Report.COMPARED: "likewise, perhaps: checksums of both sides decide",
    Report.HOLE: "likewise, at a known position of the stream",
    Report.BAD_RECORD: "records from after the change cannot be decoded, and `on_bad_record` decides",
    Report.NEW_TABLE: "the table is gone, as `dropped_tables` says; the new name is another table",
    Report.NONE: "no run detects it; rows that change later are correct",
}
CHOICES = (OnChange.APPLY, OnChange.ASK, OnChange.STOP)
STOPS = {**dict.fromkeys(IN_STREAM, "SCH001"), Report.CATALOG: "SRC100"}
NEVER_APPLIED = frozenset({Report.NAME, Report.SNAPSHOT})
ASKED = "SCH002"
WITH_STATEMENTS = " with statements"


def declarations() -> dict[str, ReportedChanges]:
    """By source type; for topics and files by message format, and once more for a format with the statements of a
    schema-change topic. A class without a declaration reports nothing."""
    sources = {name: load_class("source", name, SOURCES) for name in SOURCES}
    formats = {name: load_class("format", name, FORMATS) for name in FORMATS}
    found = {}
    for name, kind in sorted({**sources, **formats}.items()):
        if isinstance(kind, ReportsChanges):
            found[name] = kind.reported_changes
        if isinstance(kind, ReportsStatements):
            found[f"{name}{WITH_STATEMENTS}"] = kind.changes_with_statements
    return found


def sources_with_comments() -> str:
    """The types of sources whose comments of columns are copied."""
    kinds = {name: load_class("source", name, SOURCES) for name in sorted(SOURCES)}
    return ", ".join(f"`{name}`" for name, kind in kinds.items() if issubclass(kind, HasComments))


def expected_code(change: TableChange, report: Report, choice: OnChange) -> str:
    """The code of the problem with which a table stops or asks if the policy has ``choice`` for every kind of change,
    and holes are not repaired (`reconcile: manual`); empty if it goes on. The target can alter every column."""
    if report in WHATEVER_THE_POLICY:
        return WHATEVER_THE_POLICY[report]
    if policy_key(change, report) is None or (choice is OnChange.APPLY and report not in NEVER_APPLIED):
        return ""
    if choice is OnChange.ASK:
        return ASKED
    return STOPS_OF.get(change, STOPS[report])


WHATEVER_THE_POLICY = {
    Report.ROWS: "SRC100",
    Report.COMPARED: "SRC101",
    Report.HOLE: "LOG004",
    Report.BAD_RECORD: "QUA001",
    Report.NEW_TABLE: "TBL004",
}
STOPS_OF = {TableChange.TRUNCATE: "SCH004", TableChange.RENAME_TABLE: "TBL004"}


def table() -> str:
    """A Markdown table: a row per change, a column per source."""
    found = declarations()
    lines = [f"| change | {' | '.join(f'`{name}`' for name in found)} |", f"|---|{'---|' * len(found)}"]
    for change, title in TITLES.items():
        lines.append(f"| {title} | {' | '.join(REPORTS[one.of(change)] for one in found.values())} |")
    return "\n".join(lines)
