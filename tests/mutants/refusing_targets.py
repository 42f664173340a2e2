"""What a target cannot hold, and tables whose texts are compared by other rules."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

TARGETS = "airflow_cdc_provider/targets"
DECISIONS = "airflow_cdc_provider/core/decisions/table_decisions.py"
RUNS = "tests/provider/test_refusing_targets.py"
DECIDE = "tests/core/test_refused_tables.py"
DATABASE = "tests/spark/test_database_check.py"

REFUSING_TARGETS = (
    Mutant(
        "a first copy is written where two writers can commit one version",
        f"{TARGETS}/delta/target.py",
        "exclusive_problems(self) if new else []",
        "[]",
        ("tests/connectors/test_bucket_check.py::test_no_first_copy_is_written_to_a_store_that_ignores_conditions",),
    ),
    Mutant(
        "a log is opened in a store where two processes can seal a window",
        "airflow_cdc_provider/staging/change_log.py",
        "        if self.store.create(change_log.LOG, content):",
        "        if not content:",
        ("tests/core/test_staging.py",),
    ),
    Mutant(
        "a run does not ask what the target refuses",
        "airflow_cdc_provider/control/refused_tables.py",
        "or by_target.refused.get(table.task.table)",
        "or None",
        (RUNS,),
    ),
    Mutant(
        "a target that does not say what it refuses refuses nothing",
        "airflow_cdc_provider/control/refused_tables.py",
        "table.problem or by_target.unanswered.get(table.task.table)",
        "table.problem",
        (RUNS,),
    ),
    Mutant(
        "changes are applied to an unfit table",
        DECISIONS,
        "    if table.unfit:\n",
        "    if table.unfit and not table.unfit.copy_helps:\n",
        (DECIDE,),
    ),
    Mutant(
        "a table is copied again although that does not help",
        DECISIONS,
        "    if table.unfit and not table.unfit.copy_helps and not _is_paused(table):\n",
        "    if table.unfit and table.paused and not table.unfit.copy_helps:\n",
        (DECIDE,),
    ),
    Mutant(
        "a column of MySQL may ignore case",
        f"{TARGETS}/mysql/server.py",
        '"ascii_bin", "binary"})',
        '"ascii_bin", "binary", "utf8mb4_general_ci"})',
        (DATABASE,),
    ),
    Mutant(
        "a column of PostgreSQL may have a nondeterministic collation",
        f"{TARGETS}/postgres/server.py",
        "(NOT l.collisdeterministic OR t.typname = 'citext')",
        "t.typname = 'citext'",
        (DATABASE,),
    ),
    Mutant(
        "a table of BigQuery inherits the collation of its dataset",
        f"{TARGETS}/bigquery/sql.py",
        " DEFAULT COLLATE ''",
        "",
        ("tests/core/test_bigquery.py",),
    ),
    Mutant(
        "a table of Snowflake inherits the collation of its schema",
        f"{TARGETS}/snowflake/sql.py",
        "\" DEFAULT_DDL_COLLATION = ''\"",
        '""',
        ("tests/core/test_snowflake.py",),
    ),
    Mutant(
        "a key of a database may have any length",
        f"{TARGETS}/database/limits.py",
        "(length := sql.key_bytes(schema)) > limits.key_bytes",
        "(length := sql.key_bytes(schema)) > 2 * limits.key_bytes",
        (DATABASE,),
    ),
    Mutant(
        "the columns that the provider adds do not count",
        f"{TARGETS}/database/limits.py",
        "    if limits.columns and most > limits.columns:",
        "    if limits.columns and len(schema.columns) > 2 * limits.columns:",
        (DATABASE,),
    ),
    Mutant(
        "characters of a name count as bytes",
        f"{TARGETS}/database/limits.py",
        "len(name if self.in_characters else name.encode())",
        "len(name.encode())",
        (DATABASE,),
    ),
    Mutant(
        "a table that changes in odd windows only is never maintained",
        "airflow_cdc_provider/core/table/upkeep.py",
        "    return (before + own) // WINDOWS < (after + own) // WINDOWS",
        "    return before < after and (after + own) % WINDOWS == 0",
        ("tests/core/test_upkeep.py",),
    ),
    Mutant(
        "all tables are maintained in the same window",
        "airflow_cdc_provider/core/table/upkeep.py",
        "    own = zlib.crc32(table.encode())",
        "    own = len(table) * 0",
        ("tests/core/test_upkeep.py",),
    ),
    Mutant(
        "documents that a target writes otherwise are compared by their texts",
        f"{TARGETS}/database/limits.py",
        "if not isinstance(sql, StoresDocuments) or sql.json == AS_TEXT:",
        "if not isinstance(sql, StoresDocuments) or sql.json != AS_TEXT:",
        ("tests/core/test_document_limits.py",),
    ),
    Mutant(
        "a history is compared by documents that its target writes otherwise",
        f"{TARGETS}/common_checks.py",
        "(is_keyless or history is not History.NONE)",
        "is_keyless",
        ("tests/core/test_document_limits.py",),
    ),
    Mutant(
        "a log of changes is compared by documents that its target writes otherwise",
        f"{TARGETS}/common_checks.py",
        "(is_keyless or history is not History.NONE)",
        "(is_keyless or history is History.SCD2)",
        ("tests/core/test_document_limits.py",),
    ),
    Mutant(
        "documents that a target writes otherwise differ from those of the source",
        "spark_jobs/proofs/compare.py",
        "without = {*copy.unlogged, *rewritten}",
        "without = {*copy.unlogged}",
        ("tests/spark/test_native_documents.py::test_a_comparison_leaves_documents_in_another_form_out_and_says_so",),
    ),
    Mutant(
        "a key that is NaN is not found in BigQuery",
        f"{TARGETS}/bigquery/sql.py",
        "plain = not column.nullable and column.type.kind not in FLOATS",
        "plain = not column.nullable",
        ("tests/core/test_bigquery.py",),
    ),
    Mutant(
        "an initial value in BigQuery is another double than loaded ones",
        f"{TARGETS}/bigquery/sql.py",
        "        canonical = as_stored(canonical, column.type.kind)\n",
        "",
        ("tests/core/test_bigquery.py",),
    ),
    Mutant(
        "a row without key in Spanner is not found after a column was dropped",
        "spark_jobs/batches/schema_change.py",
        "if isinstance(job.tables, KeysRowsByValues) and finds_rows:",
        "if isinstance(job.tables, KeysRowsByValues) and not finds_rows:",
        (
            "tests/spark/contract/test_merge_keyless.py::test_a_row_is_found_after_a_column_was_dropped_or_the_table_stops",
        ),
    ),
    Mutant(
        "values of a new column are rounded in a warehouse that has a former one of its name",
        "airflow_cdc_provider/core/table/former_columns.py",
        "if kind != stored_as(column)]",
        "if kind == column.name]",
        (
            "tests/spark/contract/test_merge_schemas.py::"
            "test_a_new_column_with_another_type_than_a_former_one_of_its_name_is_not_written_into_it",
        ),
    ),
    Mutant(
        "an initial value in MySQL has another text than loaded ones",
        f"{TARGETS}/mysql/sql.py",
        "text = loaded_text(canonical, column)",
        "text = str(canonical)",
        ("tests/core/test_loaded_literals.py",),
    ),
    Mutant(
        "an initial value in Snowflake is another number than loaded ones",
        f"{TARGETS}/snowflake/sql.py",
        "text_literal(loaded_text(canonical, column))",
        "text_literal(str(canonical))",
        ("tests/core/test_loaded_literals.py",),
    ),
)
