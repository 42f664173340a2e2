"""What a table has beside its rows, when a new copy replaces it or it is taken back, and what its columns keep."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

POSTGRES = "airflow_cdc_provider/targets/postgres"
KINDS = f"{POSTGRES}/catalog_kinds.py"
TESTS = ("tests/connectors/test_postgres_replaced_tables.py",)
MYSQL_TESTS = ("tests/connectors/test_mysql_replaced_tables.py",)

COLUMNS = "tests/spark/test_altered_target_columns.py"
LAKES = "tests/spark/test_altered_lake_columns.py"
ROUNDS = f"{COLUMNS}::test_a_column_that_rounds_values_stops_its_table_until_it_is_copied_again"
TARGET = "airflow_cdc_provider/targets/database/target.py"

REWINDS = "tests/spark/test_rewind.py"
RESTORE = "airflow_cdc_provider/targets/delta/local_engine/restore.py"

REPLACED_TABLES = (
    Mutant(
        "a copy reads a column that its table has lost",
        "spark_jobs/writers/database.py",
        "if column_id(column.name) in present]",
        "if present]",
        (f"{COLUMNS}::test_a_table_is_read_without_columns_that_it_lacks",),
    ),
    Mutant(
        "a Delta table is taken back to files that are gone",
        RESTORE,
        "if not _exists(",
        "if _exists(",
        (f"{REWINDS}::test_a_widened_table_whose_files_are_gone_stays",),
    ),
    Mutant(
        "a Delta table is taken back to deletion vectors that are gone",
        RESTORE,
        "return in_folder and (not vector or vector_exists(store, table, vector))",
        "return in_folder",
        (f"{REWINDS}::test_a_version_whose_deletion_vectors_are_gone_leaves_the_table_unchanged",),
    ),
    Mutant(
        "a run does not compare the types of the columns in a database",
        TARGET,
        "        if not found or (not in_transactions and",
        "        if found or not found or (not in_transactions and",
        (ROUNDS,),
    ),
    Mutant(
        "a merge writes into columns that somebody has altered in a database",
        TARGET,
        "if written and statement.effect is not Effect.ALTER:",
        "if written and statement.effect is Effect.ALTER:",
        (f"{COLUMNS}::test_a_column_that_was_dropped_in_the_target_stops_its_table",),
    ),
    Mutant(
        "a decimal of as many digits keeps every value",
        "airflow_cdc_provider/targets/database/declared_types.py",
        "scale >= fraction and digits - scale >= least - fraction",
        "digits >= least",
        ("tests/core/test_declared_types.py",),
    ),
    Mutant(
        "rows without a key fit a column that shows other texts",
        "airflow_cdc_provider/targets/database/declared_types.py",
        "_fits(declared(given), declared(wanted), keyless=not key)",
        "_fits(declared(given), declared(wanted), keyless=False)",
        (f"{COLUMNS}::test_a_wider_column_that_shows_other_texts_stops_a_table_without_key",),
    ),
    Mutant(
        "a database does not distinguish names by case",
        "airflow_cdc_provider/targets/database/update_from.py",
        "return self.quoted(name)",
        "return self.quoted(name).lower()",
        ("tests/core/test_merge.py",),
    ),
    Mutant(
        "a new copy of PostgreSQL lacks the policies",
        KINDS,
        "FROM t JOIN pg_policy p ON p.polrelid = t.oid",
        "FROM t JOIN pg_policy p ON p.polrelid = t.oid AND NOT p.polpermissive",
        TESTS,
    ),
    Mutant(
        "a new copy of PostgreSQL does not enable row-level security",
        KINDS,
        "FROM t WHERE t.relrowsecurity",
        "FROM t WHERE false",
        TESTS,
    ),
    Mutant(
        "a new copy of PostgreSQL keeps default privileges",
        f"{POSTGRES}/attachments.py",
        "        cursor.execute(revoke)\n",
        "        pass\n",
        TESTS,
    ),
    Mutant(
        "a property that a new copy of PostgreSQL cannot have ends with its column",
        f"{POSTGRES}/attachments.py",
        "f.object, 'pg_class'::regclass, t.oid, a.attnum, 'a')",
        "f.object, 'pg_class'::regclass, t.oid, a.attnum, d.deptype)",
        TESTS,
    ),
    Mutant(
        "what uses the type of the rows does not depend on the table",
        f"{POSTGRES}/attachments.py",
        "('pg_type'::regclass, y.oid), ('pg_type'::regclass, y.typarray))\nLEFT",
        "('pg_type'::regclass, y.typarray))\nLEFT",
        TESTS,
    ),
    Mutant(
        "rows of PostgreSQL are shown while they are loaded",
        "airflow_cdc_provider/targets/database/staging.py",
        "if isinstance(sql, HidesRows) else []",
        "if isinstance(sql, HidesRows) and not name else []",
        TESTS,
    ),
    Mutant(
        "a first copy of PostgreSQL stays hidden",
        f"{POSTGRES}/server.py",
        '        cursor.execute(f"ALTER TABLE {full} DISABLE ROW LEVEL SECURITY")\n',
        "",
        TESTS,
    ),
    Mutant(
        "a copy is loaded before the database says that it cannot replace the table",
        "spark_jobs/writers/database.py",
        "        if current.exists and not current.shared:\n",
        "        if current.exists and current.shared:\n",
        ("tests/spark/test_database_commits.py",),
    ),
    Mutant(
        "a new copy of MySQL loses the triggers",
        "airflow_cdc_provider/targets/mysql/server.py",
        "        if exists:\n            self.require_replaceable(cursor, table)\n",
        "",
        MYSQL_TESTS,
    ),
    Mutant(
        "an alteration of MariaDB whose attempt died is taken for somebody's",
        TARGET,
        "self.log.highest_fence(control.table) > control.fence",
        "self.log.highest_fence(control.table) < control.fence",
        (f"{COLUMNS}::test_an_alteration_whose_attempt_died_before_its_commit_goes_on",),
    ),
    Mutant(
        "an object is looked for by its statement after a change of a type",
        f"{POSTGRES}/attachments.py",
        "return self.what if self.is_object else self.statement",
        "return self.statement",
        TESTS,
    ),
    Mutant(
        "privileges of the login on a table that it gives to another owner are lost",
        KINDS,
        "UNION ALL {ON_TABLE} WHERE {OF_LOGIN}",
        "UNION ALL {ON_TABLE} WHERE {OF_LOGIN} AND {OF_OTHERS}",
        TESTS,
    ),
    Mutant(
        "a column of a lake that rounds values is written to",
        "airflow_cdc_provider/targets/sparksql/table_columns.py",
        "if given is not None and not keeps_values(given, kind):",
        "if given is not None and not given:",
        (LAKES,),
    ),
    Mutant(
        "a merge whose column was dropped before its commit is published",
        "airflow_cdc_provider/targets/iceberg/target.py",
        "if columns is None and (found := self._read(iceberg_table, record.table).unfit):",
        "if columns and (found := self._read(iceberg_table, record.table).unfit):",
        (f"{LAKES}::test_a_column_that_is_altered_during_a_merge_is_not_published",),
    ),
    Mutant(
        "a constraint that somebody gave to a table is an unexpected error",
        "spark_jobs/writers/refused_writes.py",
        "    for name, (part, do) in REFUSALS.items():\n",
        "    for name, (part, do) in {}.items():\n",
        (f"{LAKES}::test_a_rule_of_a_table_that_refuses_a_change_blocks_it",),
    ),
    Mutant(
        "rows are merged into a table whose triggers change them",
        "airflow_cdc_provider/targets/postgres/server.py",
        "g.tgtype & 3 = 3",
        "g.tgtype & 3 = 4",
        (f"{COLUMNS}::test_what_changes_or_skips_rows_stops_a_table_until_it_is_dropped",),
    ),
)
