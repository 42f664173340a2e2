"""Commits to BigQuery as scripts, the ids of their jobs, and copies that are about to get the name of a table."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FOLDER = "airflow_cdc_provider/targets/bigquery"
SCRIPTS = "tests/core/test_bigquery_scripts.py"
SQL = "tests/core/test_bigquery.py"
JOBS = "tests/spark/test_bigquery_jobs.py"

BIGQUERY = (
    Mutant(
        "a decimal may become a float in BigQuery",
        "airflow_cdc_provider/targets/database/declared_types.py",
        '"numeric": frozenset({"bignumeric"}),',
        '"numeric": frozenset({"bignumeric", "float64"}),',
        (SQL,),
    ),
    Mutant(
        "a partitioning counts in a target without a name only",
        f"{FOLDER}/checks.py",
        "sql.partitions.get(task.source_table)",
        "sql.partitions.get(task.table)",
        ("tests/core/test_bigquery_checks.py",),
    ),
    Mutant(
        "a dataset may delete partitions of its tables",
        f"{FOLDER}/checks.py",
        "    if inherited := default_expirations(found, has_partitions):",
        "    if inherited := {}:",
        ("tests/core/test_bigquery_checks.py",),
    ),
    Mutant(
        "a dataset whose partitions expire takes no tables without partitions",
        f"{FOLDER}/checks.py",
        "    if has_partitions:\n",
        "    if True:\n",
        ("tests/core/test_bigquery_checks.py",),
    ),
    Mutant(
        "each question about a table of BigQuery asks for its description again",
        f"{FOLDER}/server.py",
        "cursor.described[table] if table in cursor.described else self._table(cursor, table)",
        "self._table(cursor, table)",
        (SQL,),
    ),
    Mutant(
        "a table whose partitions expire takes changes",
        "airflow_cdc_provider/targets/database/target.py",
        "            return Unfit(lost_rows(self.locate(target_table), found))\n",
        "            pass\n",
        ("tests/spark/test_bigquery_jobs.py::test_a_table_that_expires_takes_no_changes",),
    ),
    Mutant(
        "a script does not check whether the control row was as expected",
        f"{FOLDER}/scripts.py",
        "return [with_values(command.text, command.parameters), superseded]",
        "return [with_values(command.text, command.parameters)]",
        (SCRIPTS,),
    ),
    Mutant(
        "the control row is changed after the rows",
        f"{FOLDER}/scripts.py",
        "[*counts, BEGIN, *_one_row(advance), *changes, COMMIT, *results]",
        "[*counts, BEGIN, *changes, *_one_row(advance), COMMIT, *results]",
        (SCRIPTS,),
    ),
    Mutant(
        "a copy takes the name before its control row is committed",
        f"{FOLDER}/scripts.py",
        "[BEGIN, *fence, *rows, COMMIT, copy, *grants]",
        "[copy, BEGIN, *fence, *rows, COMMIT, *grants]",
        (SCRIPTS,),
    ),
    Mutant(
        "a first copy replaces a table that another attempt made meanwhile",
        f"{FOLDER}/scripts.py",
        '"CREATE OR REPLACE TABLE" if swap.expected.exists else "CREATE TABLE"',
        '"CREATE OR REPLACE TABLE"',
        (SCRIPTS,),
    ),
    Mutant(
        "two commits of an attempt to a table have one id",
        f"{FOLDER}/scripts.py",
        "parts = (record.attempt, table, record.nonce)",
        "parts = (record.attempt, table)",
        (SCRIPTS,),
    ),
    Mutant(
        "a change without its row is not refused",
        f"{FOLDER}/scripts.py",
        "IF ({statement.text}) > 0 THEN",
        "IF ({statement.text}) > 1 THEN",
        (SCRIPTS,),
    ),
    Mutant(
        "a range restricts a key column that has NULLs",
        f"{FOLDER}/bounds.py",
        "return [column for column in keys if not column.nullable]",
        "return list(keys)",
        (SQL,),
    ),
    Mutant(
        "a decimal that NUMERIC would round is NUMERIC",
        f"{FOLDER}/sql.py",
        "if scale <= NUMERIC_SCALE and precision - scale <= NUMERIC_DIGITS:",
        "if scale <= NUMERIC_SCALE:",
        (SQL,),
    ),
    Mutant(
        "the credentials may name a server of their own",
        "airflow_cdc_provider/core/connections/google.py",
        'server.scheme != "https" or server.netloc',
        'server.scheme != "https" and server.netloc',
        ("tests/core/test_google_login.py",),
    ),
    Mutant(
        "a state is read while a copy is about to get the name",
        f"{FOLDER}/target.py",
        "if len(records) > 1:",
        "if len(records) > 2:",
        (JOBS,),
    ),
    Mutant(
        "a loaded copy is dropped without regard to its job",
        f"{FOLDER}/server.py",
        "        connection.jobs.wait_for_all(swap_job(table))\n",
        "",
        (JOBS,),
    ),
    Mutant(
        "a job above the rate is not tried again",
        f"{FOLDER}/jobs.py",
        "if delay is None or not may_retry(failed):",
        "if True:",
        (JOBS,),
    ),
    Mutant(
        "a part that two tasks load has two jobs",
        f"{FOLDER}/loads.py",
        'f"cdc-load-{self.table}-{part}"',
        'f"cdc-load-{self.table}-{part}-{id(path)}"',
        (JOBS,),
    ),
    Mutant(
        "a new copy loses the grants of the old one",
        f"{FOLDER}/target.py",
        "grants = self.server.grants(cursor, table) if swap.expected.exists else []",
        "grants: list[str] = []",
        (JOBS,),
    ),
)
