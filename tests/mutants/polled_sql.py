"""The rows of a polled SQL table, and the form in which they are compared."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FOLDER = "airflow_cdc_provider/connectors/sources/jdbc_poll"
OTHER_ROWS = "tests/connectors/test_jdbc_poll_other_rows.py"
CHILDREN = (f"{OTHER_ROWS}::test_the_rows_of_inheritance_children_are_no_rows_of_their_parent",)
PARTITIONS = (f"{OTHER_ROWS}::test_a_partitioned_table_has_the_rows_of_its_partitions",)
MERGED = (f"{OTHER_ROWS}::test_the_key_of_a_table_that_reads_others_proves_nothing",)
SQLITE = ("tests/connectors/test_jdbc_poll_sqlite_times.py",)
SQLITE_VALUES = ("tests/connectors/test_jdbc_poll_sqlite_values.py",)
FILTERS = "tests/connectors/test_jdbc_poll_filters.py"
OF_MARIADB = (f"{FILTERS}::test_mariadb",)
OF_POSTGRES = (f"{FILTERS}::test_postgresql",)
OPERANDS = (f"{FILTERS}::test_an_operand_that_its_column_cannot_have_is_refused",)

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
        "in_utc and in_one_form and",
        "in_utc and",
        SQLITE,
    ),
    Mutant(
        "the zone of a time of SQLite is cut",
        f"{FOLDER}/values.py",
        "return in_utc(_timestamp(value)).replace(tzinfo=None)",
        "return _timestamp(value).replace(tzinfo=None)",
        SQLITE,
    ),
    Mutant(
        "a copy has the rows that the server selects by its collation",
        f"{FOLDER}/rows.py",
        "[row for row in rows if self._selects(row)]",
        "list(rows)",
        OF_MARIADB,
    ),
    Mutant(
        "the server leaves out rows by the order of its collation",
        f"{FOLDER}/row_filter.py",
        "or (kind is Kind.TEXT and op not in EQUALITY):",
        "or False:",
        OF_MARIADB,
    ),
    Mutant(
        "the operand of a filter is rounded to the type of the column",
        f"{FOLDER}/row_filter.py",
        "return sa.literal(int(value), sa.BigInteger()) if whole else None",
        "return sa.literal(int(value), sa.BigInteger())",
        OF_POSTGRES,
    ),
    Mutant(
        "a date that does not exist is NULL to a filter",
        f"{FOLDER}/row_filter.py",
        "return InvalidDate(kind, text)",
        "return None",
        OF_MARIADB,
    ),
    Mutant(
        "MySQL compares a text with characters that the column cannot have",
        f"{FOLDER}/row_filter.py",
        "(value.isascii() or system not in MYSQL)",
        "True",
        OF_MARIADB,
    ),
    Mutant(
        "a run compares a column with a value that it cannot have",
        f"{FOLDER}/source.py",
        "raise_problems(filter_problems(task, queries.described))",
        "pass",
        OPERANDS,
    ),
    Mutant(
        "a value of SQLite is converted to the type of its column, whatever it is",
        f"{FOLDER}/select.py",
        "return stored_value if self.system == SQLITE else column_value",
        "return column_value",
        SQLITE_VALUES,
    ),
    Mutant(
        "SQLAlchemy converts the values of SQLite before they are looked at",
        f"{FOLDER}/select.py",
        "return self._text_unless_bytes(column) if select is Select.TEXT else sa.type_coerce(column, AS_STORED)",
        "return self._text_unless_bytes(column) if select is Select.TEXT else column",
        SQLITE_VALUES,
    ),
    Mutant(
        "a row filter compares a value of another type than its column as NULL",
        f"{FOLDER}/row_filter.py",
        "if str(error) == OTHER_TYPE:",
        "if False:",
        SQLITE_VALUES,
    ),
)
