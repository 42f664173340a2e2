"""Late changes of feeds. ``ONLY="late"`` runs these."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PURE = "tests/core/test_late_changes.py"
SCHEMAS = "tests/core/test_late_schemas.py"
PLAN = "tests/core/test_batch_plan.py"
FILES = "tests/spark/pipelines/feeds/test_late_files.py"
TOUCHED = f"{FILES}::test_a_touched_file_restores_no_deleted_row"
EMPTIED = f"{FILES}::test_a_touched_file_with_a_truncate_empties_nothing"
LATE = f"{FILES}::test_a_late_file_is_applied_as_if_it_had_come_in_time"
ADDED = f"{FILES}::test_a_touched_file_from_before_a_column_was_added_keeps_its_values"
RENAMED = f"{FILES}::test_a_late_change_from_before_a_column_was_renamed_keeps_its_values"
ORDER = "tests/connectors/test_files_order.py"
FATES = "spark_jobs/folds/later_changes.py"
BATCHES = "spark_jobs/batches"

LATE_CHANGES = (
    Mutant(
        "a late change is not compared with later ones",
        FATES,
        "order < max(self.whole",
        "order > max(self.whole",
        (PURE,),
    ),
    Mutant(
        "a late change that later partial ones hide is applied",
        FATES,
        'order < self.partial.get(key, "") or order <= forgotten',
        "order <= forgotten",
        (PURE,),
    ),
    Mutant(
        "a late change that the log has forgotten is applied",
        FATES,
        " or order <= forgotten",
        "",
        (PURE,),
    ),
    Mutant(
        "ignored deletes supersede late changes",
        FATES,
        "            if is_gone and ignore_deletes:",
        "            if is_gone and not ignore_deletes:",
        (PURE,),
    ),
    Mutant(
        "all windows are searched for changes after late ones",
        "airflow_cdc_provider/core/table/applied_order.py",
        "kept.setdefault((marks[-1].window - mark.window).bit_length(), mark)",
        "kept.setdefault(0, mark)",
        (PURE,),
    ),
    Mutant(
        "the window of a later change is not searched for late ones",
        "airflow_cdc_provider/core/table/applied_order.py",
        "if mark.newest < order_key",
        "if mark.newest <= order_key",
        (PURE,),
    ),
    Mutant(
        "the number of a line is taken for an order of late events",
        "airflow_cdc_provider/connectors/decoders/common/message.py",
        "return None if self.by_line else self.offset",
        "return self.offset",
        (ORDER,),
    ),
    Mutant(
        "a line that is saved without its offset is taken for an order of late events",
        "airflow_cdc_provider/connectors/decoders/common/saved_messages.py",
        "by_line=offset is None,",
        "by_line=False,",
        (ORDER,),
    ),
    Mutant(
        "a second attempt to decode a late event forgets that it was a line",
        "airflow_cdc_provider/connectors/decoders/common/dead_letters.py",
        'by_line=context.get("by_line", False)',
        "by_line=False",
        (ORDER,),
    ),
    Mutant(
        "many late events of YDB are ordered by their lines",
        "airflow_cdc_provider/connectors/decoders/ydb/template_changes.py",
        "require(pc.or_(is_known, pa.array(by_offset)))",
        "",
        (ORDER,),
    ),
    Mutant(
        "many late events of MariaDB are ordered by their lines",
        "airflow_cdc_provider/connectors/decoders/debezium/template_events.py",
        "offsets = [message.order for",
        "offsets = [message.offset for",
        (ORDER,),
    ),
    Mutant(
        "feeds deliver nothing late",
        "airflow_cdc_provider/connectors/registry.py",
        "return definition.source.type in MESSAGE_SOURCES",
        "return False",
        (TOUCHED, EMPTIED),
    ),
    Mutant(
        "a batch forgets the newest order key, so that nothing is late",
        f"{BATCHES}/batch_input.py",
        'newest=self.stats.newest if delivers_late(self.job.step.definition) else "",',
        'newest="",',
        (TOUCHED,),
    ),
    Mutant(
        "a late truncate removes the rows of later changes",
        f"{BATCHES}/batch_input.py",
        "truncated_at=self.late_truncate,",
        'truncated_at="",',
        (LATE,),
    ),
    Mutant(
        "late changes alter the table back",
        f"{BATCHES}/batch_plan.py",
        "after = late.schemas_after if late else control.floor",
        "after = control.floor",
        (ADDED,),
    ),
    Mutant(
        "late changes from before an answered rename lose the value of the renamed column",
        f"{BATCHES}/late_schemas.py",
        "control.applied.since or 0)",
        "control.window)",
        (RENAMED,),
    ),
    Mutant(
        "a late change of a key with another text is applied beside later changes of its row",
        f"{BATCHES}/late_schemas.py",
        "if any(one.changes_keys for",
        "if all(one.changes_keys for",
        (PURE,),
    ),
    Mutant(
        "a late value goes to either of two columns",
        f"{BATCHES}/late_schemas.py",
        "former in names and (present in names or again)",
        "former in names and again",
        (PURE,),
    ),
    Mutant(
        "a late change from before a column was dropped has the value of the next one of its name",
        f"{BATCHES}/batch_plan.py",
        "        require_columns_since(log, task, control, windows, late, walked.schema)",
        "        pass",
        (PLAN,),
    ),
    Mutant(
        "a late change stops after any change without its columns",
        f"{BATCHES}/late_schemas.py",
        "above = first_keys_of(log, window, order_key)",
        'above = first_keys_of(log, window, "")',
        (PLAN,),
    ),
    Mutant(
        "a change that waits in quarantine supersedes a late one",
        FATES,
        "(is_complete or is_gone) and pair not in bad else",
        "(is_complete or is_gone) else",
        (PURE,),
    ),
    Mutant(
        "a new column loses its values in late changes because a former one of its name was renamed",
        f"{BATCHES}/late_schemas.py",
        "again = former in later.names and present not in later.names",
        "again = False",
        (SCHEMAS, PURE),
    ),
    Mutant(
        "with an ignored column, changes in time are read by renames of the past",
        f"{BATCHES}/late_schemas.py",
        "if one[1].schema_id != later.schema_id}",
        "if one[1].schema_id}",
        (SCHEMAS,),
    ),
    Mutant(
        "a late change from before a rename loses its value while it waits",
        "spark_jobs/quarantine/new_carry.py",
        "    _require_no_former_names(batch, waiting)\n",
        "",
        (RENAMED,),
    ),
    Mutant(
        "a late truncate ends versions that later changes have left as they were",
        f"{BATCHES}/batch_plan.py",
        "late.refuse_truncates([window",
        "late.refuse_truncates([] and [window",
        (f"{FILES}::test_a_late_truncate_stops_versions_and_the_same_one_again_does_not",),
    ),
    Mutant(
        "a late truncate of versions stops the table although an operator is asked, or has ignored it",
        f"{BATCHES}/batch_plan.py",
        "if window.window not in truncates.ignored])",
        "])",
        (f"{FILES}::test_an_operator_is_asked_about_a_late_truncate_of_versions_before_it_stops_them",),
    ),
)
