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
)
