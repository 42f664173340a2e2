"""Statements that change rows without telling them."""

from __future__ import annotations

from tests.mutants.breakage import Breakage

CORE = "tests/core/test_identity.py"
ALTERATIONS = "tests/connectors/test_mysql_alterations.py"
POLLED = "tests/connectors/test_jdbc_poll_identities.py"
POSTGRES = "tests/spark/pipelines/schema_changes/test_postgres_statements.py"
MARIADB = "tests/spark/pipelines/schema_changes/test_mariadb_statements.py"
JUDGED = "test_the_copy_equals_the_source_or_is_stopped_with_a_reason"

SCHEMA_CHANGES = (
    Breakage(
        "a column is known by its name alone",
        "airflow_cdc_provider/core/table/identity.py",
        "elif after is not None and after.number != before.number and not now.positional:",
        "elif after is None and before.number < 0:",
        (CORE,),
    ),
    Breakage(
        "a column that comes back is a new one, whatever the copy holds under its name",
        "airflow_cdc_provider/core/table/identity.py",
        "if after is not None:  # dropped before",
        "if False:  # dropped before",
        (CORE,),
    ),
    Breakage(
        "places of columns are numbers that never change",
        "airflow_cdc_provider/core/table/identity.py",
        "renamed = name if now.positional else names.get(before.number, name)",
        "renamed = names.get(before.number, name)",
        (CORE,),
    ),
    Breakage(
        "columns that swap their places keep their values",
        "airflow_cdc_provider/core/table/identity.py",
        "if now.positional and (moved := _moved(known, now, copied)):",
        "if now.positional and (moved := _moved(known, known, copied)):",
        (CORE,),
    ),
    Breakage(
        "a shorter column keeps every value",
        "airflow_cdc_provider/core/table/identity.py",
        "or after.length < before.length)",
        "or after.length < 0)",
        (CORE,),
    ),
    Breakage(
        "a new column is asked of the rows in one run only",
        "airflow_cdc_provider/core/table/identity.py",
        "if name not in copied.names and name in now.columns)",
        "if name not in now.columns)",
        (CORE,),
    ),
    Breakage(
        "rows older than a new column hold nothing in it",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/undetected.py",
        "if is_filled(name):",
        "if False:",
        (POLLED,),
    ),
    Breakage(
        "a new column waits until a row of its polled table changes",
        "airflow_cdc_provider/connectors/sources/polling/intervals.py",
        "return lo.schema != limit.schema",
        "return False",
        (POLLED,),
    ),
    Breakage(
        "a truncate explains every rewrite",
        "airflow_cdc_provider/connectors/sources/postgres/identities.py",
        "changes.rewritten and (changes.recomputed or not truncated)",
        "changes.rewritten and not truncated",
        (f"{POSTGRES}::{JUDGED}[truncate, rows, other values-quiet]",),
    ),
    Breakage(
        "an attached partition is taken for an empty one",
        "airflow_cdc_provider/connectors/sources/postgres/identities.py",
        "if empty:",
        "if True:",
        (f"{POSTGRES}::{JUDGED}[a table with rows is attached-quiet]",),
    ),
    Breakage(
        "rewritten rows are taken for what they were",
        "spark_jobs/verify.py",
        'if result.detail["identical"]:',
        "if True:",
        (f"{POSTGRES}::{JUDGED}[same type, other values-quiet]",),
    ),
    Breakage(
        "a new column waits for the next change of its table",
        "airflow_cdc_provider/core/decisions/run_decision.py",
        "facts.stream.has_changes or _new_columns(facts, base.table_decisions)",
        "facts.stream.has_changes",
        (f"{POSTGRES}::{JUDGED}[add with a constant-quiet]",),
    ),
    Breakage(
        "a type with other parentheses keeps every value",
        "airflow_cdc_provider/connectors/sources/mysql/column_types.py",
        "return _length(before) <= _length(after)",
        "return True",
        (ALTERATIONS,),
    ),
    Breakage(
        "every session is strict",
        "airflow_cdc_provider/connectors/sources/mysql/alterations.py",
        "elif not strict and",
        "elif False and",
        (ALTERATIONS,),
    ),
    Breakage(
        "an ALTER TABLE is no news",
        "airflow_cdc_provider/connectors/sources/mysql/stream.py",
        "statement.effect is Effect.ALTER and not may_change(statement.clauses)",
        "statement.effect is Effect.ALTER",
        (f"{MARIADB}::{JUDGED}[add with a constant-quiet]",),
    ),
)
