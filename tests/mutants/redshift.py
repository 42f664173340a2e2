"""What Redshift does in its own way: comparisons, locks, loads, conflicts."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

REDSHIFT = "airflow_cdc_provider/targets/redshift"
SERVER, SQL = f"{REDSHIFT}/server.py", f"{REDSHIFT}/sql.py"
TEXTS = ("tests/core/test_redshift.py",)
GRAMMAR = ("tests/core/test_redshift_grammar.py",)


def commits(test: str) -> tuple[str]:
    return (f"tests/spark/test_redshift_commits.py::{test}",)


REDSHIFT_TARGET = (
    Mutant(
        "a query that WLM cancels waits for a second writer",
        SERVER,
        "return errors.failed(self.address, text, self._cancelled())",
        "return errors.busy(self.address, text)",
        TEXTS,
    ),
    Mutant(
        "the row of a DELETE is named inside names and texts, too",
        SQL,
        """    def delete_where(self, target: str, condition: str) -> str:
        return f"DELETE FROM {target} WHERE {condition}"
""",
        """    def delete_where(self, target: str, condition: str) -> str:
        return f"DELETE FROM {target} WHERE " + condition.replace("_cdc_t.", f"{target}.")
""",
        ("tests/core/test_hostile_statements.py",),
    ),
    Mutant(
        "blanks at the end of a key do not count",
        SQL,
        """parts = {text: "''", f"OCTET_LENGTH({text})": "-1"}""",
        """parts = {text: "''"}""",
        TEXTS,
    ),
    Mutant(
        "a DECIMAL of 19 digits has 19 digits",
        SQL,
        "(precision + 1 if precision == SHORT_DECIMAL else precision)",
        "precision",
        TEXTS,
    ),
    Mutant(
        "the table of a DELETE has an alias",
        SQL,
        'return f"DELETE FROM {target} USING',
        'return f"DELETE FROM {target} AS {T} USING',
        GRAMMAR,
    ),
    Mutant(
        "the files of a staging table are hidden",
        "airflow_cdc_provider/targets/database/stage.py",
        'return table.lstrip("_.")',
        "return table",
        TEXTS,
    ),
    Mutant(
        "a commit locks the table itself",
        SERVER,
        "return own_lock_table(target_table)",
        "return target_table",
        commits("test_a_lock_takes_no_table_from_its_readers"),
    ),
    Mutant(
        "a load is repeated without a look at the table",
        SERVER,
        "if self._count(cursor, table) == rows:",
        "if rows < 0:",
        commits("test_a_load_whose_answer_is_lost_loads_the_rows_once"),
    ),
    Mutant(
        "the rows of a load are not counted",
        SERVER,
        "if (loaded := self._count(cursor, table)) != rows:",
        "if (loaded := self._count(cursor, table)) > rows:",
        commits("test_a_load_with_fewer_rows_than_its_files_is_refused"),
    ),
    Mutant(
        "a serialization error is an error like any other",
        SERVER,
        "if state in CONFLICT_STATES or CONFLICT.match(message):",
        "if state in CONFLICT_STATES:",
        commits("test_a_commit_that_conflicts_each_time_is_given_up_and_changes_nothing"),
    ),
    Mutant(
        "a new copy has no grants",
        SERVER,
        "for statement in grants:",
        "for statement in grants[:1]:",
        commits("test_a_new_copy_keeps_the_grants_of_the_old_table"),
    ),
    Mutant(
        "a character of a piece of a record has several bytes",
        "airflow_cdc_provider/targets/database/control.py",
        "ensure_ascii=len(names) > 1",
        "ensure_ascii=False",
        commits("test_a_record_longer_than_one_column_is_stored_in_pieces"),
    ),
)
