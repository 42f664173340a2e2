"""Tables that no run copies as they are now: their changes are not in the WAL, the role may not read them, or their key
is not sent or identifies no row. ``check`` and each run ask the same. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_cdc_provider.connectors.declared_keys import declared_key_problem
from airflow_cdc_provider.connectors.row_filters import operand_problems
from airflow_cdc_provider.connectors.sources.postgres.publication import quoted
from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable
from airflow_cdc_provider.connectors.sources.postgres.table_facts import TableFacts
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Problem

KINDS = {"r": "ordinary table", "p": "partitioned table", "f": "foreign table", "v": "view", "m": "materialized view"}
GRANTS = frozenset({"SRC010", "SRC025"})
"""Codes of problems of the role and not of the table."""


def refused_problems(
    task: TableTask, table: TableFacts, described: CatalogTable | None, role: str
) -> Iterator[Problem]:
    kind = list(_kind(table))
    yield from kind
    yield from _grants(task, table, role)
    if described and not kind:
        yield from _key(task, table, described)
        yield from _declared_key(task, table)
        yield from operand_problems(task)


def encoding_problems(encoding: str, location: str) -> Iterator[Problem]:
    """``encoding``: of the database."""
    if encoding == "SQL_ASCII":
        yield Problem(
            "SRC023",
            "the database has no defined text encoding",
            location,
            "server_encoding = SQL_ASCII",
            "any other encoding",
            "restore the database into a new one with ENCODING 'UTF8'",
        )


def _kind(table: TableFacts) -> Iterator[Problem]:
    if table.kind not in ("r", "p") or table.foreign_parts:
        yield Problem(
            "SRC017",
            f"changes of {table.table} are not in the WAL",
            table.table,
            f"foreign partitions {', '.join(table.foreign_parts)}" if table.foreign_parts else KINDS[table.kind],
            "ordinary and partitioned tables",
            "remove it from the definition, or copy its underlying tables",
        )
    elif table.persistence != "p":
        yield Problem(
            "SRC017",
            f"changes of {table.table} are not in the WAL",
            table.table,
            "an unlogged table" if table.persistence == "u" else "a temporary table",
            "logged tables",
            f"ALTER TABLE {table.sql} SET LOGGED;" if table.persistence == "u" else "remove it from the definition",
        )
    elif table.unlogged_parts:
        yield Problem(
            "SRC017",
            f"changes of partitions of {table.table} are not in the WAL",
            table.table,
            f"unlogged partitions {', '.join(table.unlogged_parts)}",
            "logged partitions",
            " ".join(f"ALTER TABLE {name} SET LOGGED;" for name in table.unlogged_parts),
        )
    elif table.partition:
        yield Problem(
            "SRC007",
            f"{table.table} is a partition",
            table.table,
            "a partition of another table",
            "the partitioned table as a whole",
            "name the partitioned table in the definition",
        )


def _grants(task: TableTask, table: TableFacts, role: str) -> Iterator[Problem]:
    if not table.may_enter:
        yield Problem(
            "SRC010",
            f"role {role} lacks USAGE on schema {table.namespace}",
            table.table,
            "no USAGE",
            do=f"GRANT USAGE ON SCHEMA {quoted(table.namespace)} TO {quoted(role)};",
        )
    denied = sorted({column.text_of or column.name for column in task.schema.columns} - {*table.readable})
    if denied and not table.may_select:
        yield Problem(
            "SRC010",
            f"role {role} lacks SELECT on {table.table}",
            table.table,
            f"no SELECT on the columns {', '.join(denied)}" if table.readable else "no SELECT",
            "SELECT on the table, or on all columns that are copied",
            f"GRANT SELECT ON TABLE {table.sql} TO {quoted(role)};",
            "no value of a column that the role may not select is written",
        )
    if table.hidden_rows:
        yield Problem(
            "SRC025",
            f"row security hides rows of {table.table} from role {role}",
            table.table,
            "policies apply to this role",
            "a role that sees every row",
            f"ALTER ROLE {quoted(role)} BYPASSRLS;",
        )


def _declared_key(task: TableTask, table: TableFacts) -> Iterator[Problem]:
    columns = [quoted(name) for name in task.rule.key]
    fill = ", ".join(f"ALTER COLUMN {column} SET NOT NULL" for column in columns)
    index = f"CREATE UNIQUE INDEX ON {table.sql} ({', '.join(columns)});"
    if problem := declared_key_problem(task, table.unique_keys, f"ALTER TABLE {table.sql} {fill}; {index}"):
        yield problem


def _key(task: TableTask, table: TableFacts, described: CatalogTable) -> Iterator[Problem]:
    """With replica identity full, such a table is one without a key."""
    if described.generated_key and not task.schema.key and table.identity != "f":
        yield Problem(
            "SRC153",
            f"the key of {table.table} has a generated column, which PostgreSQL does not send",
            table.table,
            f"key ({', '.join(described.generated_key)})",
            "a key of ordinary columns, or replica identity full",
            f"name other columns that identify a row under `key`; or ALTER TABLE {table.sql} REPLICA IDENTITY FULL;",
        )
