"""Deletion, renaming and move of a replicator."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONTROL, POSTGRES = "airflow_cdc_provider/control", "airflow_cdc_provider/connectors/sources/postgres"


def of_deletions(test: str) -> tuple[str]:
    return (f"tests/provider/test_delete.py::{test}",)


def of_moves(test: str) -> tuple[str]:
    return (f"tests/provider/test_rename_and_move.py::{test}",)


LEAVING = (
    Mutant(
        "a run of a deleted replicator starts",
        f"{CONTROL}/open_window.py",
        "    register(state, replicator.definition)\n",
        "",
        of_deletions("test_no_run_of_a_deleted_replicator_starts_until_it_is_recreated"),
    ),
    Mutant(
        "running steps keep their lease during a deletion",
        f"{CONTROL}/replicator_changes.py",
        "        state.seize(name, lane, holder, LEASE_S)\n",
        "        state.acquire(name, lane, holder, LEASE_S)\n",
        of_deletions("test_running_steps_lose_their_lease_and_tasks_are_waited_for"),
    ),
    Mutant(
        "a renamed table is not fenced under its former name",
        f"{CONTROL}/rename_replicator.py",
        "        commit_fence(former, table, target_table, before, change.requested_by)\n",
        "",
        of_moves("test_a_renamed_replicator_continues_without_a_copy"),
    ),
    Mutant(
        "a folder that has control records of the new name is copied again",
        f"{CONTROL}/rename_replicator.py",
        "    if not change.copied:",
        "    if True:",
        of_moves("test_a_renaming_that_dies_is_finished_by_its_repetition"),
    ),
    Mutant(
        "a moved log leaves the copies without a new fence",
        f"{CONTROL}/move_staging.py",
        "        fence_copies(replicator, change.requested_by)\n",
        "",
        of_moves("test_a_moved_log_continues_without_a_copy"),
    ),
    Mutant(
        "a folder is moved although the new one is in use",
        f"{CONTROL}/move_staging.py",
        "    if _required(state.replicators.get(name)).definition.staging == change.former_staging:",
        "    if True:",
        of_moves("test_a_move_that_dies_is_finished_by_its_repetition"),
    ),
    Mutant(
        "a table that its owner has added again leaves the publication",
        f"{POSTGRES}/added_tables.py",
        "if now.get(table) == membership)",
        "if table in now)",
        (
            "tests/connectors/test_postgres_own_objects.py::test_only_tables_that_the_replicator_added_leave_the_publication",
        ),
    ),
    Mutant(
        "of two replicators that add tables at once one is recorded",
        f"{POSTGRES}/added_tables.py",
        "    connection.execute(LOCK, (publication,))\n",
        "",
        ("tests/connectors/test_postgres_own_objects.py::test_replicators_that_add_tables_at_once_are_all_recorded",),
    ),
)
