"""The published cut of a database: rows with the cursors at which the tables were consistent, and a view that shows
whether they still are. Cursors move in the transactions that move the data, so a transaction that reads ``valid`` and
the tables sees one moment of the source."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.targets.database.command import Command
from airflow_cdc_provider.targets.database.names import CUT, PUBLISHED, copy_name
from airflow_cdc_provider.targets.database.sql import Sql

COLUMNS = ("replicator", "target_table", "identity", "cursor_window", "cut_window", "cut_at")
WINDOWS = ("cursor_window", "cut_window")


def create_cut_table(sql: Sql) -> list[str]:
    """Idempotent statements."""
    quoted, name = sql.quoted, sql.short_text_type
    columns = [
        *(f"{quoted(column)} {name} NOT NULL" for column in ("replicator", "target_table", "identity", "cut_at")),
        f"{quoted('cursor_window')} {sql.integer_type} NOT NULL",
        f"{quoted('cut_window')} {sql.integer_type} NOT NULL",
        sql.primary_key.format(f"{quoted('replicator')}, {quoted('target_table')}"),
    ]
    return sql.create_table(CUT, columns, "", staging=False)


def create_view(sql: Sql, control_tables: Sequence[str]) -> str:
    """A statement that creates or replaces the view over the rows of all control tables."""
    return f"CREATE OR REPLACE VIEW {sql.table(PUBLISHED)} AS {view_query(sql, control_tables)}"


def view_query(sql: Sql, control_tables: Sequence[str]) -> str:
    quoted = sql.quoted
    selected = ", ".join(f"p.{quoted(column)}" for column in ("replicator", "cut_window", "cut_at"))
    same = " AND ".join(f"c.{quoted(column)} = p.{quoted(column)}" for column in ("target_table", "identity"))
    is_current = f"CASE WHEN c.{quoted('cursor_window')} = p.{quoted('cursor_window')} THEN 1 ELSE 0 END"
    columns = ", ".join(map(quoted, ("target_table", "identity", "cursor_window")))
    rows = " UNION ALL ".join(f"SELECT {columns} FROM {sql.table(name)}" for name in sorted(control_tables))
    return (
        f"SELECT {selected}, MIN({is_current}) AS {quoted('valid')}"
        f" FROM {sql.table(CUT)} AS p LEFT JOIN ({rows}) AS c ON {same}"
        f" WHERE p.{quoted('replicator')} <> '' GROUP BY {selected}"
    )


def write_cut(sql: Sql, cut: Cut) -> list[Command]:
    """Replace an older cut; a newer one stays. The caller holds the cut's lock."""
    table, window = sql.table(CUT), sql.quoted("cut_window")
    of_replicator = f"{sql.quoted('replicator')} = %s"
    commands = [Command(f"DELETE FROM {table} WHERE {of_replicator} AND {window} <= %s", (cut.replicator, cut.window))]
    if cut.tables:
        types = {name: sql.integer_type if name in WINDOWS else sql.short_text_type for name in COLUMNS}
        row = f"SELECT {', '.join(f'{sql.parameter.format(types[name])} AS {sql.quoted(name)}' for name in COLUMNS)}"
        rows = " UNION ALL ".join(row for _ in cut.tables)
        newer = f"SELECT 1 FROM {table} WHERE {of_replicator} AND {window} > %s"
        values = [
            value
            for one in cut.tables
            for value in (cut.replicator, _name(one), one.identity, one.window, cut.window, cut.at)
        ]
        text = (
            f"INSERT INTO {table} ({', '.join(map(sql.quoted, COLUMNS))})"
            f" SELECT * FROM ({rows}) AS n WHERE NOT EXISTS ({newer})"
        )
        commands.append(Command(text, (*values, cut.replicator, cut.window)))
    return commands


def _name(one: CutTable) -> str:
    return copy_name(one.target, one.table, one.shared)


def invalidate_cut(sql: Sql, target_table: str) -> Command:
    """Mark the cut invalid for a table that a new copy replaces."""
    sets, where = f"{sql.quoted('identity')} = ''", f"{sql.quoted('target_table')} = %s"
    return Command(f"UPDATE {sql.table(CUT)} SET {sets} WHERE {where}", (target_table,))
