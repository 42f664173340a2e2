"""Commits as scripts: one transaction in one job. A script that ends early rolls it back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.published_cut import Cut
from airflow_cdc_provider.targets.bigquery.failures import NO_ROW, SUPERSEDED
from airflow_cdc_provider.targets.bigquery.sql import BigQuerySql, text_literal
from airflow_cdc_provider.targets.database.command import Command
from airflow_cdc_provider.targets.database.commit import Commit, Swap
from airflow_cdc_provider.targets.database.cuts import write_cut
from airflow_cdc_provider.targets.database.merge_sql import Effect, Statement

BEGIN, COMMIT = "BEGIN TRANSACTION", "COMMIT TRANSACTION"
COUNTED = (Effect.DELETED, Effect.UPDATED, Effect.INSERTED)
"""The columns of the result of a commit, in this order."""


def commit_script(sql: BigQuerySql, commit: Commit) -> str:
    """The control row comes first: of two commits, the later one ends there. Its result is one row with ``COUNTED``."""
    changes = [line for statement in commit.statements for line in _lines(statement)]
    counts = [f"DECLARE {', '.join(map(_variable, COUNTED))} INT64 DEFAULT 0"] if changes else []
    results = [f"SELECT {', '.join(map(_variable, COUNTED))}"] if changes else []
    advance = commit.advance(sql, commit.record)
    return script([*counts, BEGIN, *_one_row(advance), *changes, COMMIT, *results])


def swap_script(sql: BigQuerySql, swap: Swap, options: str, grants: Sequence[str]) -> str:
    """The new copy gets the name by one statement after its control row is committed. ``options``: of the table;
    ``grants``: on it."""
    raised = swap.raise_fence(sql)
    fence = _one_row(raised) if raised else []
    rows = [with_values(command.text, command.parameters) for command in swap.commands(sql)]
    create = "CREATE OR REPLACE TABLE" if swap.expected.exists else "CREATE TABLE"
    copy = f"{create} {sql.table(swap.target_table)} COPY {sql.table(swap.shadow)} OPTIONS({options})"
    return script([BEGIN, *fence, *rows, COMMIT, copy, *grants])


def cut_script(sql: BigQuerySql, cut: Cut) -> str:
    commands = write_cut(sql, cut)
    return script([BEGIN, *(with_values(one.text, one.parameters) for one in commands), COMMIT])


def script(statements: Sequence[str]) -> str:
    return "".join(f"{statement};\n" for statement in statements)


def commit_job(table: str, record: ControlRecord) -> str:
    """The id of the job that commits ``record``."""
    parts = (record.attempt, table, record.nonce)
    return f"cdc-commit-{hashlib.sha256(':'.join(parts).encode()).hexdigest()[:40]}"


def swap_job(shadow: str) -> str:
    """The id of the job that gives a copy the name of its table."""
    return f"cdc-swap-{shadow}"


def with_values(text: str, values: Sequence[Any]) -> str:
    """The text with a literal for each ``%s``."""
    return text % tuple(map(_literal, values)) if values else text


def _one_row(command: Command) -> list[str]:
    superseded = f"IF @@row_count != 1 THEN RAISE USING MESSAGE = '{SUPERSEDED}'; END IF"
    return [with_values(command.text, command.parameters), superseded]


def _lines(statement: Statement) -> list[str]:
    match statement.effect:
        case Effect.REFUSE:
            return [f"IF ({statement.text}) > 0 THEN RAISE USING MESSAGE = '{NO_ROW}'; END IF"]
        case Effect.FILL | Effect.FORGET:
            return [statement.text]
        case effect:
            return [statement.text, f"SET {_variable(effect)} = {_variable(effect)} + @@row_count"]


def _variable(effect: Effect) -> str:
    return f"_cdc_rows_{effect}"


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int) else text_literal(str(value))
