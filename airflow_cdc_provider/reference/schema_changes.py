"""The page of the schema changes: what sources report, what follows, and what targets do."""

from __future__ import annotations

from airflow_cdc_provider.core.spec.schema_policy import OnChange
from airflow_cdc_provider.core.table.reported_changes import IN_STREAM, Report, TableChange
from airflow_cdc_provider.reference import source_changes, target_changes
from airflow_cdc_provider.reference.source_changes import CHOICES, MEANINGS, REPORTS
from airflow_cdc_provider.targets.target import TargetTables

PAGE = """# Schema changes by source, policy and target

This page is generated from what each source class declares and from the function that decides in a run. A contract test
makes the changes of the first table at each source, under each policy, and compares the copies in PostgreSQL, MariaDB,
Iceberg and Delta with what both tables say. The policies are explained in
[Schema changes](../guides/schema-changes.md).

## What each source reports

`datastream`, `debezium` and `ydb` are message formats, of topics and of files alike. `debezium with statements`: the
schema-change topic of a connector for MySQL or MariaDB is among the topics or files.

{sources}

| report | meaning | `apply` | `ask` | `stop` |
|---|---|---|---|---|
{reports}

An empty cell in the first table: the source does not have the change. The codes are those of the problems with which a
table stops; under `stop` they are SCH004 for `TRUNCATE`, and TBL004 for a renamed table. A table with `SCH002` waits
for an operator. A table with `LOG004`, `SRC100` or `SRC101` is copied again where the source has `reconcile: auto`,
unless its columns changed. `drop_column` has `keep`, `set_null` and `drop` instead of `apply`.

A new column with the name of a former one, which the target still has, stops its table with SCH005 if it has another
type, or if the table is a history.

Comments of columns are read from the catalogs of {commented}, whatever the policy.

## What each target does

If the policy is to apply the change. *With the rows*: in the commit of the first rows that have the column. *In place*:
by a commit that alters the table, before the first row that needs it. *Copied again*: by a resync. *Blocked*: SCH001,
until an operator requests a resync. A column of the key is altered like any other one, unless it has a row of its own.
An empty cell: the copy has no comments.

{targets}
"""


def page() -> str:
    return PAGE.format(
        sources=source_changes.table(),
        reports="\n".join(_reports()),
        commented=source_changes.sources_with_comments(),
        targets=target_changes.table(),
    )


def expected_code(change: TableChange, report: Report, choice: OnChange, tables: TargetTables) -> str:
    """The code of the problem with which a table stops or asks if the policy has ``choice`` for every kind of change,
    dropped columns are dropped, and holes are not repaired (`reconcile: manual`); empty if it goes on."""
    code = source_changes.expected_code(change, report, choice)
    applied = choice is OnChange.APPLY and report in IN_STREAM
    return code if code or not applied or target_changes.can_apply(change, tables) else source_changes.STOPS[report]


def _reports() -> list[str]:
    return [f"| {REPORTS[one]} | {meaning} | {_codes(one)} |" for one, meaning in MEANINGS.items()]


def _codes(report: Report) -> str:
    return " | ".join(_code(report, choice) for choice in CHOICES)


def _code(report: Report, choice: OnChange) -> str:
    if report is Report.NONE:
        return ""
    code = source_changes.expected_code(TableChange.RENAME_COLUMN, report, choice)
    return code or ("copied again" if report is Report.CATALOG else "applied")
