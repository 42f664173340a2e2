"""The fold, tested on the SQL itself by cases or by random histories."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CASES = "tests/spark/contract/test_fold_cases.py::test_keyed_rows_equal_the_source_after_each_case"
DOUBLE_CASES = "tests/spark/contract/test_fold_cases.py::test_of_two_rows_with_one_key_the_remaining_one_keeps_it"
BARE_CASES = "tests/spark/contract/test_fold_cases.py::test_rows_without_key_equal_the_source_after_each_case"
KEYED = "tests/spark/contract/test_merge_keyed.py"
KEYLESS = "tests/spark/contract/test_merge_keyless.py"
FOLD = "tests/spark/test_fold.py"
UNORDERED = "tests/spark/test_unordered.py"
TRUNCATED = "test_a_truncate_removes_all_earlier_rows_and_a_change_without_its_row_applies_nothing"
BARE_TRUNCATED = "test_a_truncate_removes_all_equal_rows_and_a_delete_without_its_row_blocks_the_table"
FORMER = "test_the_values_of_a_former_column_do_not_count_in_a_new_one_of_its_name"
RANDOM = "tests/spark/test_merge_random.py"

FOLDS = (
    Mutant(
        "a fold reads the values of a former column as those of a new one",
        "spark_jobs/batches/batch_input.py",
        "return without_columns(rows, self.plan.added)",
        "return rows",
        (f"{KEYLESS}::{FORMER}[delta]",),
    ),
    Mutant(
        "of two entries for one position any is used",
        "spark_jobs/folds/lives.py",
        "if signature(entry) != signature(previous):",
        "if not signature(entry):",
        (f"{FOLD}::test_e18_two_different_changes_of_a_row_at_one_position_block_the_table",),
    ),
    Mutant(
        "of two entries for one position small batches use the last",
        "spark_jobs/folds/duplicates.py",
        "pc.and_(pc.or_(operations_differ, images_differ), ",
        "pc.and_(pc.and_(operations_differ, images_differ), ",
        (f"{FOLD}::test_e18_two_different_changes_of_a_row_at_one_position_block_the_table",),
    ),
    Mutant(
        "a known NULL is taken for an unknown value",
        "spark_jobs/folds/lives.py",
        "                if name in image:",
        "                if image.get(name, NULL) != NULL:",
        (RANDOM,),
    ),
    Mutant(
        "a row that is inserted again keeps columns of the deleted one",
        "spark_jobs/folds/lives.py",
        "return (begins and not self.arrived) or self.first.whole",
        "return self.first.whole",
        (f"{CASES}[delta in Spark-hard-a new row has no values of the deleted one]",),
    ),
    Mutant(
        "a partial change after a truncate counts as a row",
        "spark_jobs/folds/lives.py",
        "dead = (self.begins or rules.truncated) and not self.born",
        "dead = self.begins and not self.born",
        (f"{FOLD}::test_a_partial_update_behind_a_truncate_blocks_the_table",),
    ),
    Mutant(
        "an upsert after a truncate counts as a change of a deleted row",
        "spark_jobs/folds/lives.py",
        "begins = starts and (self.begins or self.rules.truncated)",
        "begins = starts and self.begins",
        (f"{FOLD}::test_a_partial_upsert_behind_a_truncate_is_a_new_row",),
    ),
    Mutant(
        "a flagged row loses its last values",
        "spark_jobs/folds/fold.py",
        "            keys |= (groups.counts > 1) & groups.deleted\n",
        "            keys |= (groups.counts < 0) & groups.deleted\n",
        (f"{KEYED}::test_a_soft_delete_flags_and_keeps_an_insert_revives_and_a_truncate_flags_all[delta in Spark]",),
    ),
    Mutant(
        "a duplicate record counts as a new row",
        "spark_jobs/folds/lives.py",
        "            continue\n        starts",
        "            pass\n        starts",
        (RANDOM,),
    ),
    Mutant(
        "a departure after an arrival removes the key although a row stays",
        "spark_jobs/folds/fold.py",
        "groups = KeyGroups(without_passing_rows(groups))",
        "groups = KeyGroups(groups.entries)",
        (DOUBLE_CASES,),
    ),
    Mutant(
        "of a source without order any of two entries is used",
        "spark_jobs/folds/duplicates.py",
        'F.col("most.signature") != F.bitwise_not(F.col("least.signature"))',
        'F.col("most.signature").isNull()',
        (f"{UNORDERED}::test_e18_two_different_changes_of_a_row_at_one_position_block_the_table",),
    ),
    Mutant(
        "a row with a changed key does not get the values of its old key",
        "spark_jobs/folds/lives.py",
        "        for member in chain:\n",
        "        for member in chain[:1]:\n",
        (RANDOM,),
    ),
    Mutant(
        "keys of one chain go to several tasks",
        "spark_jobs/folds/frames.py",
        "_with_chains(entries) if moved else",
        "_with_chains(entries) if not entries else",
        ("tests/spark/test_fold_in_tasks.py",),
    ),
    Mutant(
        "a truncate does not hide what came before it",
        "spark_jobs/batches/batch_input.py",
        "return self.truncated_at or self.control.floor",
        "return self.control.floor",
        (f"{KEYED}::{TRUNCATED}[delta in Spark]",),
    ),
    Mutant(
        "a truncate empties a table that ignores deletes",
        "spark_jobs/batches/batch_input.py",
        "if self.task.rule.ignores_truncates or self.history is not History.NONE:",
        "if self.history is not History.NONE:",
        (f"{KEYED}::test_ignored_deletes_and_truncates_keep_the_last_values_of_the_rows[delta in Spark]",),
    ),
    Mutant(
        "changes that the copy contains are applied again",
        "spark_jobs/windows/log_reader.py",
        '(F.col("order_key") > after) &',
        '(F.col("order_key") > "") &',
        (f"{FOLD}::test_rows_without_key_up_to_the_floor_are_in_the_copy_already",),
    ),
    Mutant(
        "a row with a changed key loses its unknown columns",
        "spark_jobs/engines/fold_frame.py",
        "moved = shape.moved > 0 and",
        "moved = shape.moved < 0 and",
        (f"{CASES}[delta in Spark-hard-15b a move takes the unknown column along]",),
    ),
    Mutant(
        "a row that is inserted and changes its key must have existed",
        "spark_jobs/folds/parent_rows.py",
        "            .when(F.col(MAY_BE_MISSING), F.lit(None))\n",
        "",
        (f"{CASES}[delta in Spark-hard-15b a row that is put moves on with what is there]",),
    ),
    Mutant(
        "a NULL in the key of a row with a changed key matches no row",
        "spark_jobs/folds/parent_rows.py",
        'F.col(f"_cdc_r{n}").eqNullSafe(F.col(f"_cdc_p{schema.names.index(name)}"))',
        'F.col(f"_cdc_r{n}") == F.col(f"_cdc_p{schema.names.index(name)}")',
        (f"{KEYED}::test_a_null_in_a_key_column_matches_a_null[delta in Spark]",),
    ),
    Mutant(
        "a flagged row that is inserted again keeps its old values",
        "airflow_cdc_provider/targets/sparksql/merge_sql.py",
        'unknown = f" WHEN {T}.{DELETED} THEN NULL" if plan.soft else ""',
        'unknown = ""',
        (f"{KEYED}::test_a_flagged_row_that_is_upserted_keeps_no_old_value[delta in Spark]",),
    ),
    Mutant(
        "equal inserted rows are one row",
        "spark_jobs/folds/keyless.py",
        'records = records.dropDuplicates(["order_key"])',
        'records = records.dropDuplicates(["after"])',
        (f"{BARE_CASES}[delta in Spark-18 everything delivered twice]",),
    ),
    Mutant(
        "a record delivered twice counts twice",
        "spark_jobs/folds/keyless.py",
        'records = records.dropDuplicates(["order_key"])',
        'records = records.where("true")',
        (f"{BARE_CASES}[delta in Spark-18 everything delivered twice]",),
    ),
    Mutant(
        "the delete of one of several equal rows deletes the others",
        "spark_jobs/folds/keyless.py",
        'remaining = F.coalesce(IN_TARGET, F.lit(0)).cast("int") + F.col(NET)',
        "remaining = F.lit(0)",
        (f"{BARE_CASES}[delta in Spark-8 of two equal rows one goes]",),
    ),
    Mutant(
        "fewer equal rows than deletes are ignored",
        "spark_jobs/folds/keyless.py",
        'F.when(remaining >= 0, remaining).otherwise(F.raise_error(F.lit(NO_ROW)).cast("int"))',
        "F.greatest(remaining, F.lit(0))",
        (f"{KEYLESS}::{BARE_TRUNCATED}[delta in Spark]",),
    ),
    Mutant(
        "equal floats of different text are one row",
        "spark_jobs/folds/keyless.py",
        "if column.type.kind in FLOATING else left.eqNullSafe(right)",
        "if column.name in FLOATING else left.eqNullSafe(right)",
        (f"{BARE_CASES}[delta in Spark-equal numbers that are not equal copies]",),
    ),
    Mutant(
        "of a source without order the oldest change wins",
        "spark_jobs/folds/unordered.py",
        "F.max_by(F.struct(*FIELDS, *CARRY_COLUMNS), rank)",
        "F.min_by(F.struct(*FIELDS, *CARRY_COLUMNS), rank)",
        (f"{UNORDERED}::test_an_older_record_that_comes_late_changes_nothing",),
    ),
    Mutant(
        "tombstones are dropped",
        "spark_jobs/folds/unordered.py",
        '_tombstone() & (F.col("order_key") > fold.retired)',
        "_tombstone() & F.lit(False)",
        (f"{UNORDERED}::test_an_older_record_that_comes_late_changes_nothing",),
    ),
    Mutant(
        "changes after a barrier are inserted",
        "spark_jobs/folds/unordered.py",
        '(F.col("order_key") <= fold.retired_before)',
        '(F.col("order_key") < "")',
        (f"{UNORDERED}::test_a_barrier_retires_tombstones_and_records_that_arrive_after_it_are_in_quarantine",),
    ),
)
