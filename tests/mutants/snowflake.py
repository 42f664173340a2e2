"""Commits to Snowflake: locks, transactions that are aborted from outside, loads, and swaps after their commit."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SNOWFLAKE, DATABASE = "airflow_cdc_provider/targets/snowflake", "airflow_cdc_provider/targets/database"
SERVER, TRANSACTIONS = f"{SNOWFLAKE}/server.py", f"{SNOWFLAKE}/transactions.py"
TEXTS = ("tests/core/test_snowflake.py",)


def commits(test: str) -> tuple[str]:
    return (f"tests/spark/test_snowflake_commits.py::{test}",)


def contract(test: str) -> tuple[str]:
    return (f"tests/spark/contract/{test}[snowflake]",)


SNOWFLAKE_TARGET = (
    Mutant(
        "Snowflake decides which texts are NULL",
        f"{SNOWFLAKE}/stage.py",
        "TYPE = PARQUET NULL_IF = ()",
        "TYPE = PARQUET",
        TEXTS,
    ),
    Mutant(
        "a document with a member twice stops its table",
        f"{SNOWFLAKE}/sql.py",
        """PARSE_JSON({text}, 'd')""",
        "PARSE_JSON({text})",
        TEXTS,
    ),
    Mutant(
        "a fence leaves a copy that is committed and has no name yet",
        f"{SNOWFLAKE}/target.py",
        "        prepare_staging(self.server, target_table)\n",
        "",
        commits("test_a_fence_is_not_lost_to_a_copy_that_stood_still_before_its_swap"),
    ),
    Mutant(
        "a copy gets the name without its control row",
        SERVER,
        "        self._require_control_row(cursor, shadow, table)\n",
        "",
        commits("test_a_copy_whose_transaction_is_aborted_at_its_commit_gets_the_name_with_its_control_row"),
    ),
    Mutant(
        "a copy that swaps after its commit leaves the fence of the old one",
        f"{DATABASE}/target.py",
        "raised = None if self.server.swaps_under_lock else swap.raise_fence(self.sql)",
        "raised = None",
        commits("test_a_commit_between_the_commit_of_a_copy_and_its_swap_is_rejected"),
    ),
    Mutant(
        "a swap renames the copy over the old table",
        SERVER,
        "ALTER TABLE {new} SWAP WITH {old}",
        "ALTER TABLE {old} SWAP WITH {old}",
        contract("test_copies.py::test_a_copy_over_a_table_replaces_rows_columns_and_cursor_at_once"),
    ),
    Mutant(
        "the replaced copy stays",
        SERVER,
        "        self.drop_if_unused(connection, shadow)\n",
        "",
        commits("test_a_replaced_copy_is_dropped"),
    ),
    Mutant(
        "a statement after the end of the locked transaction belongs to the commit",
        f"{DATABASE}/target.py",
        "if self.server.transaction(cursor) != locked:",
        "if False:",
        commits("test_a_transaction_that_is_aborted_before_the_cursor_moves_is_repeated_as_a_whole"),
    ),
    Mutant(
        "a commit without a transaction is taken for done",
        f"{DATABASE}/target.py",
        "            self._require_committed(cursor, table, record)\n            return counts\n",
        "            return counts\n",
        commits("test_a_transaction_that_is_aborted_at_its_commit_is_repeated"),
    ),
    Mutant(
        "the lock of a dead session is waited for",
        SERVER,
        "        while True:\n            end_idle_transactions(cursor, self.sql, table)\n",
        "        end_idle_transactions(cursor, self.sql, table)\n        while True:\n",
        commits("test_the_lock_of_a_session_without_a_client_is_taken_from_it"),
    ),
    Mutant(
        "a session that works is taken for a dead one",
        TRANSACTIONS,
        "return 0 < int(statements) == int(idle)",
        "return int(statements) >= int(idle)",
        commits("test_the_lock_of_a_session_that_works_is_not_taken_from_it"),
    ),
    Mutant(
        "a load takes every file of its folder",
        f"{SNOWFLAKE}/stage.py",
        "FILES = ({one}) FILE_FORMAT",
        "FILE_FORMAT",
        TEXTS,
    ),
    Mutant(
        "a row that cannot be loaded is left out",
        f"{SNOWFLAKE}/stage.py",
        "ON_ERROR = ABORT_STATEMENT",
        "ON_ERROR = CONTINUE",
        TEXTS,
    ),
    Mutant(
        "rows are loaded and not committed",
        SERVER,
        """            failpoint("load.before_commit")
            connection.commit()
""",
        """            failpoint("load.before_commit")
""",
        contract("test_commits.py::test_a_batch_applies_once_and_not_under_an_old_fence"),
    ),
    Mutant(
        "rows that a commit changes are not counted",
        f"{DATABASE}/target.py",
        "counts[statement.effect] += max(cursor.rowcount, 0)",
        "counts[statement.effect] = max(cursor.rowcount, 0)",
        contract("test_row_counts.py::test_rows_are_counted_after_copies_changes_fences_and_truncates"),
    ),
    Mutant(
        "a NULL in a key is equal to nothing",
        f"{SNOWFLAKE}/sql.py",
        'return f"EQUAL_NULL({left}, {right})" if column.nullable else f"{left} = {right}"',
        'return f"{left} = {right}"',
        contract("test_merge_keyed.py::test_a_null_in_a_key_column_matches_a_null"),
    ),
    Mutant(
        "a moment is read in the time zone of the session",
        f"{SNOWFLAKE}/sql.py",
        "({text} || '+00:00')::{kind}",
        "{text}::{kind}",
        TEXTS,
    ),
)
