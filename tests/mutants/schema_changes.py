"""Statements that change rows without change records."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "tests/core/test_identity.py"
ALTERATIONS = "tests/connectors/test_mysql_alterations.py"
REMAINING = "tests/core/test_remaining_alterations.py"
IN_TARGETS = "tests/spark/contract/test_alterations.py"
OTHER_CASE = "test_a_column_that_lives_in_a_former_one_with_another_case_is_altered"
REWINDS = "tests/spark/contract/test_rewinds.py"
GOES_BACK = "test_a_table_goes_back_beyond_altered_columns_and_has_them_altered_again"
NOT_RENAMED = "test_a_column_is_not_renamed_to_the_name_of_a_former_one"
POLLED = "tests/connectors/test_jdbc_poll_identities.py"
POSTGRES = "tests/spark/pipelines/schema_changes/test_postgres_statements.py"
MARIADB = "tests/spark/pipelines/schema_changes/test_mariadb_statements.py"
COPY_IS_CORRECT = "test_the_copy_equals_the_source_or_is_stopped_with_a_reason"

SCHEMA_CHANGES = (
    Mutant(
        "a virtual column of Oracle has no expression",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/identities.py",
        'expression=table.expressions.get(name, ""),',
        'expression="",',
        (POLLED,),
    ),
    Mutant(
        "the columns of SQL Server are numbered by their positions",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/identities.py",
        "one = replace(one, number=number, type=",
        "one = replace(one, type=",
        (POLLED,),
    ),
    Mutant(
        "the digits of a second of SQL Server are no part of a type",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/identities.py",
        "THEN CONVERT(varchar(3), c.scale)",
        "THEN NULL",
        (POLLED,),
    ),
    Mutant(
        "a column is identified by its name alone",
        "airflow_cdc_provider/core/table/identity.py",
        "elif after is not None and after.number != before.number and not now.positional:",
        "elif after is None and before.number < 0:",
        (CORE,),
    ),
    Mutant(
        "a column that returns is a new one, although the copy has values under its name",
        "airflow_cdc_provider/core/table/identity.py",
        "if after is not None:  # dropped before",
        "if False:  # dropped before",
        (CORE,),
    ),
    Mutant(
        "positions of columns never change",
        "airflow_cdc_provider/core/table/identity.py",
        "renamed = name if now.positional else names.get(before.number, name)",
        "renamed = names.get(before.number, name)",
        (CORE,),
    ),
    Mutant(
        "columns that swap their positions keep their values",
        "airflow_cdc_provider/core/table/identity.py",
        "if now.positional and (moved := _moved(known, now, copied)):",
        "if now.positional and (moved := _moved(known, known, copied)):",
        (CORE,),
    ),
    Mutant(
        "a shorter column keeps every value",
        "airflow_cdc_provider/core/table/identity.py",
        "or after.length < before.length)",
        "or after.length < 0)",
        (CORE,),
    ),
    Mutant(
        "a new column is fetched in one run only",
        "airflow_cdc_provider/core/table/identity.py",
        "if name not in copied.names and name in now.columns)",
        "if name not in now.columns)",
        (CORE,),
    ),
    Mutant(
        "rows older than a new column are NULL in it",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/undetected.py",
        "if is_filled(name):",
        "if False:",
        (POLLED,),
    ),
    Mutant(
        "a new column waits until a row of its polled table changes",
        "airflow_cdc_provider/connectors/sources/polling/intervals.py",
        "return lo.schema != limit.schema",
        "return False",
        (POLLED,),
    ),
    Mutant(
        "a truncate explains every rewrite",
        "airflow_cdc_provider/connectors/sources/postgres/identities.py",
        "changes.rewritten and (changes.recomputed or changes.rejoined or not truncated)",
        "changes.rewritten and (changes.rejoined or not truncated)",
        (f"{POSTGRES}::{COPY_IS_CORRECT}[truncate, rows, other values-quiet]",),
    ),
    Mutant(
        "an attached partition is taken for an empty one",
        "airflow_cdc_provider/connectors/sources/postgres/identities.py",
        "if empty:",
        "if True:",
        (f"{POSTGRES}::{COPY_IS_CORRECT}[a table with rows is attached-quiet]",),
    ),
    Mutant(
        "rewritten rows count as unchanged",
        "spark_jobs/verify.py",
        'if result.detail["identical"] and not documents:',
        "if True:",
        (f"{POSTGRES}::{COPY_IS_CORRECT}[same type, other values-quiet]",),
    ),
    Mutant(
        "a new column waits for the next change of its table",
        "airflow_cdc_provider/core/decisions/run_decision.py",
        "facts.stream.has_changes or _changed_columns(facts, base.table_decisions)",
        "facts.stream.has_changes",
        (f"{POSTGRES}::{COPY_IS_CORRECT}[add with a constant-quiet]",),
    ),
    Mutant(
        "a type with other parentheses keeps every value",
        "airflow_cdc_provider/connectors/sources/mysql/column_types.py",
        "return _length(before) <= _length(after)",
        "return True",
        (ALTERATIONS,),
    ),
    Mutant(
        "every session is strict",
        "airflow_cdc_provider/connectors/sources/mysql/alterations.py",
        "elif not strict and",
        "elif False and",
        (ALTERATIONS,),
    ),
    Mutant(
        "an ALTER TABLE is ignored",
        "airflow_cdc_provider/connectors/sources/mysql/stream.py",
        "statement.effect is Effect.ALTER and not may_change(statement.clauses)",
        "statement.effect is Effect.ALTER",
        (f"{MARIADB}::{COPY_IS_CORRECT}[add with a constant-quiet]",),
    ),
    Mutant(
        "an alteration that is done is executed again",
        "airflow_cdc_provider/targets/due_alterations.py",
        "if _may_be_done(naming[:done], found) and",
        "if not done and",
        (REMAINING,),
    ),
    Mutant(
        "an alteration counts as done by its new name alone",
        "airflow_cdc_provider/targets/due_alterations.py",
        "if one.old in present or (one.new and one.new not in present):",
        "if one.new and one.new not in present:",
        (REMAINING,),
    ),
    Mutant(
        "a column cannot get a name that differs from a former one in case alone",
        "airflow_cdc_provider/targets/database/commits.py",
        "present, alterations, target.sql.column_id)",
        "present, alterations)",
        (f"{IN_TARGETS}::{NOT_RENAMED}[postgres-former]",),
    ),
    Mutant(
        "a table of versions gets two columns of one name",
        "airflow_cdc_provider/targets/due_alterations.py",
        "    for one in _taken(found, [one for one in named if one.changes_names]):",
        "    for one in ():",
        (f"{IN_TARGETS}::{NOT_RENAMED}[delta-Former]",),
    ),
    Mutant(
        "a column of a Delta table is found by its exact name alone",
        "airflow_cdc_provider/targets/delta/alterations.py",
        'if field["name"].lower() == one.column.name.lower())',
        'if field["name"] == one.column.name)',
        (f"{IN_TARGETS}::{OTHER_CASE}[delta-drop--]",),
    ),
    Mutant(
        "a table that goes back keeps its newest columns",
        "airflow_cdc_provider/targets/iceberg/commits.py",
        "            *_columns_of(table, version),\n",
        "",
        (f"{REWINDS}::{GOES_BACK}[iceberg-False]",),
    ),
    Mutant(
        "a table that others took back keeps its newest columns",
        "airflow_cdc_provider/targets/iceberg/commits.py",
        "    if restored:\n",
        "    if False:\n",
        (f"{REWINDS}::{GOES_BACK}[iceberg-True]",),
    ),
)
