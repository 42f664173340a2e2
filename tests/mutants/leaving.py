"""Deletion, renaming and move of a replicator."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONTROL, POSTGRES = "airflow_cdc_provider/control", "airflow_cdc_provider/connectors/sources/postgres"


def of_deletions(test: str) -> tuple[str]:
    return (f"tests/provider/test_delete.py::{test}",)


def of_moves(test: str) -> tuple[str]:
    return (f"tests/provider/test_rename_and_move.py::{test}",)


RELEASES = "tests/spark/contract/test_leaving.py::test_the_release_of_a_dropped_copy_spares"

LEAVING = (
    Mutant(
        "the release of a dropped copy takes the control row of the next one",
        "airflow_cdc_provider/targets/database/leaving.py",
        "own = [one for one in ours if identity in (None, one)]",
        "own = ours",
        (f"{RELEASES}_the_next_one[postgres]",),
    ),
    Mutant(
        "the release of a dropped copy takes the control row of the next one in Spanner",
        "airflow_cdc_provider/targets/spanner/leaving.py",
        " or identity not in (None, row.identity):",
        ":",
        (f"{RELEASES}_the_next_one[spanner]",),
    ),
    Mutant(
        "the release of a dropped copy takes the control table of one that is being made",
        "airflow_cdc_provider/targets/database/leaving.py",
        " and not _has_next(server, cursor, target_table, identity):",
        ":",
        (f"{RELEASES}_one_that_is_being_made[redshift]",),
    ),
    Mutant(
        "a run of a deleted replicator starts",
        f"{CONTROL}/open_window.py",
        "    newest = register(state, replicator.definition, run.dag_version)\n",
        "    newest = True\n",
        of_deletions("test_no_run_of_a_deleted_replicator_starts_until_it_is_recreated"),
    ),
    Mutant(
        "running steps keep their lease during a deletion",
        f"{CONTROL}/replicator_changes.py",
        "        state.seize(name, lane, change.holder, LEASE_S)\n",
        "        state.acquire(name, lane, change.holder, LEASE_S)\n",
        of_deletions("test_running_steps_lose_their_lease_and_tasks_are_waited_for"),
    ),
    Mutant(
        "a renamed table is not fenced under its former name",
        f"{CONTROL}/rename_replicator.py",
        "        commit_fence(former, table, target_table, before, change.requested_by, owner=before.control.owner)\n",
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
        "    if check_holder(state, name, change).definition.staging == former_staging:",
        "    if True:",
        of_moves("test_a_move_that_dies_is_finished_by_its_repetition"),
    ),
    Mutant(
        "a process goes on with a change that another one has finished",
        "airflow_cdc_provider/core/decisions/replicator_changes.py",
        "    if entry is None or now is None or (now.id, now.holder) != (change.id, change.holder):",
        "    if entry is None:",
        of_moves("test_a_move_that_stood_still_does_nothing_more"),
    ),
    Mutant(
        "a repetition carries out a change beside the process that has begun it",
        f"{CONTROL}/replicator_changes.py",
        "change=replace(unfinished, holder=change.holder))",
        "change=unfinished)",
        ("tests/provider/test_replicator_entries.py::test_a_change_is_kept_as_it_was_begun",),
    ),
    Mutant(
        "a folder without a log replaces a log",
        "airflow_cdc_provider/staging/transfer.py",
        "    if any(file.path == LOG for file in files):\n",
        "    if True:\n",
        of_moves("test_a_folder_without_a_log_replaces_no_log"),
    ),
    Mutant(
        "a finished change is begun again",
        f"{CONTROL}/replicator_changes.py",
        "            raise Blocked(problem)\n        return replace(entry, change=change)\n",
        "            pass\n        return replace(entry, change=change)\n",
        (
            "tests/provider/test_replicator_entries.py::"
            "test_what_is_finished_is_not_begun_again_by_a_repetition_on_its_way",
        ),
    ),
    Mutant(
        "a refused renaming has begun under the former name",
        f"{CONTROL}/replicator_changes.py",
        "    state.replicators.change_two(definition.name, renamed.name, begin_former, reserve)\n",
        "    state.replicators.change(definition.name, begin_former)\n"
        "    state.replicators.change(renamed.name, reserve)\n",
        ("tests/provider/test_replicator_entries.py::test_a_rename_to_a_name_in_use_leaves_the_replicator_as_it_was",),
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
    Mutant(
        "a renamed replicator meets rows that a command left under its new name",
        "airflow_cdc_provider/state/replicators.py",
        "                    connection.execute(_replaced(table, columns, former, name))\n",
        "                    _replaced(table, columns, former, name)\n",
        ("tests/provider/test_replicator_entries.py",),
    ),
    Mutant(
        "a key in use is an outage of the state store",
        "airflow_cdc_provider/state/database.py",
        "        except IntegrityError:\n            raise  # a key that is in use: the database works\n",
        "",
        ("tests/provider/test_state_sessions.py",),
    ),
    Mutant(
        "a replicator is renamed while a copy of it is not known",
        "airflow_cdc_provider/cli/leaving.py",
        "        require_known_tables(before)\n",
        "",
        ("tests/provider/test_rename_and_move.py",),
    ),
    Mutant(
        "the log moves to where no YAML can name it",
        "airflow_cdc_provider/cli/leaving.py",
        "        _require_folders_apart(replace(definition, staging=staging), name)\n",
        "",
        ("tests/provider/test_rename_and_move.py",),
    ),
)
