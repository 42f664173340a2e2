"""Rows that must be fetched from the source."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

KEYED = "tests/spark/test_dirty_keys.py"
RANDOM = "tests/spark/test_dirty_random.py"
RUNS = "tests/provider/test_dirty_keys.py"
ON_TOP = f"{KEYED}::test_the_row_is_fetched_and_newer_changes_apply_to_it"
WAITS = f"{KEYED}::test_a_row_that_cannot_be_fetched_waits_with_its_changes_and_nothing_else_does"
LATER = f"{KEYED}::test_changes_from_before_the_fetch_are_ignored_in_later_windows"
UNSENT = f"{KEYED}::test_columns_that_were_not_sent_are_fetched_for_a_new_row_too"
NEEDLESS = f"{KEYED}::test_no_row_is_fetched_if_a_later_change_contains_or_deletes_it"
WITHOUT_ROW = f"{KEYED}::test_a_change_without_its_row_causes_a_fetch_in_the_next_run"

IGNORED = f"{KEYED}::test_a_delete_that_is_ignored_needs_no_row_and_leaves_what_is_known"
GONE = f"{KEYED}::test_a_row_that_the_source_has_deleted_keeps_what_is_known_where_deletes_are_ignored"

CUT = f"{KEYED}::test_changes_from_before_the_fetch_are_ignored_until_a_window_ends_where_the_source_ends"
CONSISTENT = f"{KEYED}::test_a_copy_is_consistent_after_a_window_that_ends_where_the_source_ends"

DIRTY_KEYS = (
    Mutant(
        "the time of a fetch is dropped after two windows of any length",
        "spark_jobs/quarantine/partitioning.py",
        "refetch.not_replayed(list(earlier), windows, table, last)",
        "[row for row in earlier if int(row.until or 0) > last]",
        (CUT,),
    ),
    Mutant(
        "a copy is consistent after two windows of any length",
        "spark_jobs/batches/batch_input.py",
        "            high=self._high,\n",
        "",
        (CONSISTENT,),
    ),
    Mutant(
        "a cut contains a copy whose later windows end early",
        "airflow_cdc_provider/staging/whole_windows.py",
        "for table, part in parts.items() if not part.cut)",
        "for table, part in parts.items())",
        ("tests/core/test_published_cut.py",),
    ),
    Mutant(
        "the cut reads a manifest for each table",
        "airflow_cdc_provider/staging/whole_windows.py",
        "if window not in self._known:",
        "if True:",
        ("tests/core/test_published_cut.py::test_each_manifest_is_read_once_for_all_tables_and_rows",),
    ),
    Mutant(
        "each decision lists all earlier ones",
        "airflow_cdc_provider/staging/change_log.py",
        "            number += 1\n            while not (written",
        "            number = last_number(self.store.names(FOLDER)) + 1\n            while not (written",
        ("tests/core/test_decisions.py::test_many_decisions_list_the_folder_once",),
    ),
    Mutant(
        "each fetched row has its own search",
        "spark_jobs/quarantine/refetch.py",
        "return [row for row in fetched if not replayed[row.until]]",
        "return [row for row in fetched if not windows.is_replayed(table, int(row.until or 0), last)]",
        ("tests/core/test_published_cut.py::test_rows_that_were_fetched_at_one_time_have_one_answer",),
    ),
    Mutant(
        "a row that was deleted is fetched where deletes are ignored",
        "spark_jobs/quarantine/partitioning.py",
        "settled_marks(entries, list(marks), ignore_deletes=False)",
        "settled_marks(entries, list(marks), self._ignores_deletes)",
        (IGNORED,),
    ),
    Mutant(
        "a deleted row replaces known changes where deletes are ignored",
        "spark_jobs/quarantine/partitioning.py",
        "        if not self._ignores_deletes:\n            return fetch\n",
        "        if not self._ignores_deletes or fetch.rows:\n            return fetch\n",
        (GONE,),
    ),
    Mutant(
        "changes from before the fetch are applied on top of it",
        "spark_jobs/quarantine/arrow_entries.py",
        "bool(times) and entry.commit_ts < max(times)",
        "not times",
        (ON_TOP,),
    ),
    Mutant(
        "the time of a fetch is dropped at once",
        "spark_jobs/quarantine/refetch.py",
        "NEXT_WINDOWS = 2",
        "NEXT_WINDOWS = 0",
        (LATER,),
    ),
    Mutant(
        "changes before a gap are applied after the fetched row",
        "spark_jobs/quarantine/arrow_entries.py",
        "if entry.order_key <= max(row.order_key for row in fetched):",
        "if not fetched:",
        (RANDOM,),
    ),
    Mutant(
        "changes after an unknown row are dropped",
        "spark_jobs/quarantine/arrow_entries.py",
        "ArrowEntries(table.filter(waits))",
        'ArrowEntries(table.filter(pc.and_(waits, pc.is_valid(table["kind"]))))',
        (WAITS,),
    ),
    Mutant(
        "a new row without all its values counts as known",
        "spark_jobs/quarantine/arrow_entries.py",
        " and not self.refetch",
        "",
        (UNSENT,),
    ),
    Mutant(
        "every gap is fetched",
        "spark_jobs/quarantine/partitioning.py",
        "if mark not in needless]",
        "]",
        (NEEDLESS,),
    ),
    Mutant(
        "a row marked deleted is changed",
        "spark_jobs/quarantine/orphan_updates.py",
        "rows.where(~F.col(DELETED)) if DELETED in rows.columns else rows",
        "rows",
        (WITHOUT_ROW,),
    ),
    Mutant(
        "rows are not fetched again",
        "airflow_cdc_provider/core/decisions/run_decision.py",
        "(v.pending_window is not None or v.dirty)",
        "v.pending_window is not None",
        (RUNS,),
    ),
    Mutant(
        "rows to fetch are taken from the index",
        "airflow_cdc_provider/control/settled_tables.py",
        "        and not row.control.carry.dirty\n",
        "",
        (RUNS,),
    ),
)
