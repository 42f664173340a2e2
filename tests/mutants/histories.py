"""Copies that keep earlier rows."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

RANDOM = "tests/spark/test_histories_random.py::test_every_version_of_every_row_is_that_of_the_source"
HISTORIES = "tests/core/test_histories.py"
CONTRACT = "tests/spark/contract/test_histories.py"
AUDITS = "tests/spark/pipelines/polling/test_key_audits.py"
WAITING = (
    "tests/spark/test_quarantine.py::"
    "test_a_key_audit_drops_what_waits_for_a_row_that_is_gone_and_ends_no_version_whose_changes_wait"
)
PROGRAMS = "tests/programs/test_named_programs.py::test_a_program_that_once_showed_a_defect_shows_none"

HISTORY = (
    Mutant(
        "a log has the rows that a poll reads again",
        "airflow_cdc_provider/loader/history_checks.py",
        "        if rule.history is History.LOG:",
        "        if False:",
        ("tests/provider/test_loader_mistakes.py",),
    ),
    Mutant(
        "a copy over a history forgets the former columns of its table",
        "spark_jobs/histories/copy_again.py",
        "former=former,",
        "",
        (f"{CONTRACT}::test_a_copy_over_versions_has_the_types_of_former_columns",),
    ),
    Mutant(
        "a history continues with a copy that begins before its changes",
        "spark_jobs/histories/copy_again.py",
        "        if self.is_late:",
        "        if False:",
        (f"{CONTRACT}::test_a_history_does_not_continue_with_a_copy_that_begins_before_its_changes",),
    ),
    Mutant(
        "a log has deletes of rows that its filter left out",
        "spark_jobs/histories/changes.py",
        "if filtered else",
        "if False else",
        (f"{CONTRACT}::test_a_log_has_no_deletes_of_rows_that_its_filter_left_out",),
    ),
    Mutant(
        "a log looks for each row that its filter leaves out, also where the event shows it",
        "airflow_cdc_provider/connectors/transports/messages/filtering.py",
        "warning = MAYBE_LEFT_OUT if selected is None else LEFT_OUT",
        "warning = MAYBE_LEFT_OUT",
        ("tests/connectors/test_feed_filters.py",),
    ),
    Mutant(
        "a copy over a history leaves values that only copies have as they were",
        "spark_jobs/histories/copy_again.py",
        "all_equal(self.schema, self.work.task.rule.columns.of_changes)",
        "all_equal(self.schema, self.copy.unlogged)",
        (f"{CONTRACT}::test_a_copy_over_versions_brings_values_that_the_stream_does_not_have",),
    ),
    Mutant(
        "earlier versions show what the YAML hides now",
        "spark_jobs/resync.py",
        "    require_same_values(task, where, copied.before, hidden_sha256, copied.schema, old)\n",
        "",
        ("tests/spark/test_resync.py::test_a_history_does_not_continue_with_hidden_values_beside_clear_ones",),
    ),
    Mutant(
        "a row that is fetched replaces changes of a history",
        "spark_jobs/quarantine/partitioning.py",
        "        if not self._keeps_changes:\n            return entries.without_superseded(fetched)",
        "        return entries.without_superseded(fetched)",
        ("tests/spark/test_dirty_keys.py::test_a_history_has_the_changes_around_a_row_that_is_fetched",),
    ),
    Mutant(
        "a key audit ends a version whose changes wait",
        "spark_jobs/copies/key_audit.py",
        'same_key(keys), "left_anti")',
        'F.lit(False), "left_anti")',
        (WAITING,),
    ),
    Mutant(
        "a record that waits brings back a row that a key audit has removed",
        "spark_jobs/copies/key_audit.py",
        'present = waiting.join(source, same_key(keys), "left_semi")',
        "present = waiting",
        (WAITING,),
    ),
    Mutant(
        "a copy over a history begins before versions that have ended",
        "spark_jobs/histories/copy_again.py",
        "return max(self.began, ended)",
        "return self.began",
        (f"{CONTRACT}::test_a_copy_over_versions_begins_after_those_that_have_ended",),
    ),
    Mutant(
        "a copy over a history forgets how late its versions are",
        "spark_jobs/histories/copy_again.py",
        "versions_until=self._versions_until,",
        "",
        (f"{CONTRACT}::test_a_copy_over_versions_begins_after_those_that_have_ended",),
    ),
    Mutant(
        "changes that are committed while a batch is folded let the next one read all versions",
        "spark_jobs/histories/version_times.py",
        "if times.some_unknown else []",
        "if True else []",
        ("tests/core/test_version_times.py",),
    ),
    Mutant(
        "a key audit of a history compares the rows of a partial copy",
        "spark_jobs/resync.py",
        "if audited is not None and kept_history is task.rule.history:",
        "if audited is not None and kept_history is task.rule.history is History.NONE:",
        (f"{AUDITS}::test_changes_before_and_after_an_audit_are_applied",),
    ),
    Mutant(
        "a run that ends after the commit of a key audit leaves the table to a full copy",
        "spark_jobs/copies/key_audit.py",
        "CATCHING_UP, resumes=True)",
        "CATCHING_UP)",
        (f"{AUDITS}::test_an_audit_is_done_with_its_commit",),
    ),
    Mutant(
        "a target compares a control record that differs from its own by ids of columns",
        "spark_jobs/resync.py",
        "current = follow_schema(job, task, current, before, copy.schema)",
        "current = follow_schema("
        "job, task, replace(current, control=replace(current.control, schema=before)), before, copy.schema)",
        ("tests/spark/test_resync.py::test_a_history_follows_a_table_that_was_made_again_with_a_wider_column",),
    ),
    Mutant(
        "columns of a table that was made again have the ids of the former one",
        "spark_jobs/resync.py",
        "or former.table == now.table",
        "or former is not now or former.table == now.table",
        (f"{PROGRAMS}[a table that was dropped and made again, whose copy keeps rows]",),
    ),
    Mutant(
        "a change that leaves a row as it was makes a version",
        "spark_jobs/histories/versions.py",
        'kept = marked.where("NOT _cdc_same")',
        "kept = marked",
        (RANDOM,),
    ),
    Mutant(
        "another commit time makes a version",
        "spark_jobs/histories/versions.py",
        "F.struct(OP, *as_values(schema, of_changes))",
        "F.struct(OP, *as_values(schema, ()))",
        (f"{CONTRACT}::test_another_commit_time_or_operation_alone_makes_no_version",),
    ),
    Mutant(
        "a complete change of a row releases it in a history, too",
        "spark_jobs/quarantine/parking.py",
        "context.is_open or context.at in parking.until_decided",
        "context.is_open",
        (f"{CONTRACT}::test_later_changes_of_a_row_wait_for_its_bad_record_until_an_operator_decides",),
    ),
    Mutant(
        "a truncate ends a row whose changes wait, and these count as older when they are released",
        "spark_jobs/histories/versions.py",
        "            together = _without_ends_of_waiting(batch, together, waiting)\n",
        "            pass\n",
        (f"{CONTRACT}::test_a_row_whose_changes_wait_is_ended_by_a_truncate_of_the_meantime_when_they_are_decided",),
    ),
    Mutant(
        "versions of other rows stay current after a truncate",
        "spark_jobs/histories/versions.py",
        ".unionByName(_truncated(untouched, truncates))",
        "",
        (RANDOM,),
    ),
    Mutant(
        "a version after the first truncate of a batch is not ended by the second",
        "spark_jobs/histories/versions.py",
        "for one in sorted(truncates)",
        "for one in sorted(truncates)[:1]",
        (f"{CONTRACT}::test_of_several_truncates_the_first_after_a_version_ends_it",),
    ),
    Mutant(
        "a row after a truncate has values of the row before it",
        "spark_jobs/folds/versions.py",
        "truncated=passed > 0",
        "truncated=False",
        (f"{HISTORIES}::test_a_truncate_ends_the_rows_before_it_and_those_after_it_have_nothing_of_them",),
    ),
    Mutant(
        "the key of a version is that of its row",
        "airflow_cdc_provider/core/table/history.py",
        "else (*rows.key, SEQUENCE)",
        "else rows.key",
        (f"{HISTORIES}::test_the_schema_of_a_history_contains_that_of_its_rows",),
    ),
    Mutant(
        "a source table is read once for each of its copies",
        "airflow_cdc_provider/connectors/copied/reading.py",
        "copies[task.source_table].append(task)",
        "copies[task.table].append(task)",
        (f"{HISTORIES}::test_a_table_with_a_history_beside_its_copy_is_selected_twice_and_read_once",),
    ),
    Mutant(
        "a history beside a copy marks deleted rows",
        "airflow_cdc_provider/core/spec/copies.py",
        "OnDelete.HARD if rule.on_delete is OnDelete.SOFT else rule.on_delete",
        "rule.on_delete",
        (f"{HISTORIES}::test_a_history_beside_a_copy_has_a_name_a_target_and_a_rule_of_its_own",),
    ),
    Mutant(
        "a history stops where a first snapshot was interrupted and begins again",
        "spark_jobs/resync.py",
        "return began_there or not _is_announced(job, task) or _was_interrupted(job, task)",
        "return began_there or not _is_announced(job, task)",
        ("tests/core/test_begun_histories.py",),
    ),
)
