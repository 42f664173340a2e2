"""The rows of a polled SQL table, and the form in which they are compared."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FOLDER = "airflow_cdc_provider/connectors/sources/jdbc_poll"
OTHER_ROWS = "tests/connectors/test_jdbc_poll_other_rows.py"
CHILDREN = (f"{OTHER_ROWS}::test_the_rows_of_inheritance_children_are_no_rows_of_their_parent",)
PARTITIONS = (f"{OTHER_ROWS}::test_a_partitioned_table_has_the_rows_of_its_partitions",)
MERGED = (f"{OTHER_ROWS}::test_the_key_of_a_table_that_reads_others_proves_nothing",)
SQLITE = ("tests/connectors/test_jdbc_poll_sqlite_times.py",)

POLLED_SQL = (
    Mutant(
        "a table is polled with the rows of its inheritance children",
        f"{FOLDER}/select.py",
        'select.with_hint(self.table, "ONLY", POSTGRESQL) if self.described.read_alone else select',
        "select",
        CHILDREN,
    ),
    Mutant(
        "a partitioned table is polled without its partitions",
        f"{FOLDER}/other_rows.py",
        "self.has_children and name not in self.partitioned",
        "self.has_children",
        PARTITIONS,
    ),
    Mutant(
        "the key of a MERGE table proves that its rows are unique",
        f"{FOLDER}/other_rows.py",
        "return engine.lower() not in LOGGING_ENGINES",
        "return False",
        MERGED,
    ),
    Mutant(
        "timestamps of SQLite are compared as the texts that are stored",
        f"{FOLDER}/select.py",
        "return sa.Function(WALL_TIME, stored, int(self.offset.total_seconds()), type_=sa.Text())",
        "return sa.type_coerce(stored, sa.Text())",
        SQLITE,
    ),
    Mutant(
        "a row whose timestamp has an unknown form is left out in silence",
        f"{FOLDER}/check.py",
        "unknown_timestamp(connection, queries),",
        "None,",
        SQLITE,
    ),
    Mutant(
        "a table with timestamps of SQLite is proven by its key alone",
        f"{FOLDER}/check.py",
        "not unnamed and in_one_form and",
        "not unnamed and",
        SQLITE,
    ),
    Mutant(
        "the zone of a time of SQLite is cut",
        f"{FOLDER}/values.py",
        "return in_utc(_timestamp(value)).replace(tzinfo=None)",
        "return _timestamp(value).replace(tzinfo=None)",
        SQLITE,
    ),
)
