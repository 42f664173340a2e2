"""Bad records and the records parked behind them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

KEYED = "tests/spark/test_quarantine.py"
WAITS = f"{KEYED}::test_a_bad_record_and_its_key_wait_and_all_other_keys_continue"
SAME_POSITION = f"{KEYED}::test_records_at_one_position_are_distinguished_by_their_keys"
TOGETHER = f"{KEYED}::test_rows_that_moved_without_all_columns_wait_together"
STOPS = f"{KEYED}::test_a_bad_record_stops_the_table_before_its_window"
TOO_MANY = f"{KEYED}::test_too_many_bad_records_or_one_of_any_key_stop_the_table_too"
DECODE = "tests/connectors/test_postgres_decode.py"
PURE = "tests/core/test_quarantine.py"
OPERATOR = ("tests/provider/test_quarantine.py", "tests/provider/test_record_decisions.py")
FILTERED = "tests/core/test_filtered_corrections.py"

QUARANTINE = (
    Mutant(
        "a waiting record keeps the value of a column that was dropped",
        "spark_jobs/quarantine/dropped_columns.py",
        "if name not in names})",
        "})",
        ("tests/core/test_dropped_columns.py",),
    ),
    Mutant(
        "waiting records keep a column that is dropped in the target",
        "spark_jobs/batches/schema_change.py",
        "fenced(schema=schema, extent=extent, comments=comments, carry=carry, former=former)",
        "fenced(schema=schema, extent=extent, comments=comments, former=former)",
        (
            "tests/programs/test_named_programs.py::test_a_program_that_once_showed_a_defect_shows_none"
            "[a record waits while its column is dropped in the target, and another one gets its name]",
        ),
    ),
    Mutant(
        "a repair writes values of a dropped column into another one of its name",
        "spark_jobs/batches/batch_plan.py",
        "if change.kind in (ChangeKind.DROP_COLUMN, ChangeKind.RENAME) and change.before",
        "if change.kind is ChangeKind.RENAME and change.before",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "changes after a bad record do not wait",
        "spark_jobs/quarantine/arrow_entries.py",
        "applied = table.filter(pc.and_(pc.invert(waits), ",
        "applied = table.filter(pc.and_(pc.is_valid(waits), ",
        (WAITS,),
    ),
    Mutant(
        "the other half of a key change does not wait",
        "spark_jobs/quarantine/parking.py",
        "set(entries.linked_halves(cuts)) - marks if parking.moves and cuts else set()",
        "set[Mark]()",
        (TOGETHER,),
    ),
    Mutant(
        "a bad record quarantines all records at its position",
        "spark_jobs/quarantine/arrow_entries.py",
        "lambda entry: (entry.k, entry.order_key) in omitted",
        "lambda entry: bool(omitted)",
        (SAME_POSITION,),
    ),
    Mutant(
        "a partial change releases a key",
        "spark_jobs/quarantine/arrow_entries.py",
        "(self.op in IMAGE_OPERATIONS and self.after_complete)",
        "self.op in IMAGE_OPERATIONS",
        (WAITS,),
    ),
    Mutant(
        "an unreadable record is skipped",
        "spark_jobs/batches/batch_input.py",
        "return unreadable_records(self.job.log, self.plan.windows, self.after)",
        "return []",
        (WAITS, STOPS),
    ),
    Mutant(
        "the release of a key raises no fence",
        "spark_jobs/merge.py",
        "    if batch.window == control.window:\n        return replace(record, fence=control.fence + 1)\n",
        "",
        ("tests/core/test_commit_records.py",),
    ),
    Mutant(
        "a bad record with an unknown key is quarantined",
        "spark_jobs/quarantine/partitioning.py",
        "count <= limit and not keyless",
        "count <= limit",
        (TOO_MANY,),
    ),
    Mutant(
        "bad records without limit",
        "airflow_cdc_provider/core/log/quarantine.py",
        "return max(limits.max_rows, int(limits.max_share * records))",
        "return max(limits.max_rows, records)",
        (PURE,),
    ),
    Mutant(
        "the bytes of a message are lost",
        "airflow_cdc_provider/connectors/sources/postgres/dead_letters.py",
        "UndecodedRecord(CODEC, base64_of(data), ",
        "UndecodedRecord(CODEC, base64_of(data[:4]), ",
        (DECODE,),
    ),
    Mutant(
        "the oldest decision counts",
        "airflow_cdc_provider/core/decisions/operator_decisions.py",
        "sorted(matching, key=lambda decision: decision.id)",
        "sorted(matching, key=lambda decision: decision.id, reverse=True)",
        (PURE,),
    ),
    Mutant(
        "a request is made before the decision is recorded",
        "airflow_cdc_provider/control/quarantine_commands.py",
        "    decided = zip(chosen, corrected, strict=True)\n",
        "    decided = zip((), (), strict=True)\n",
        OPERATOR,
    ),
    Mutant(
        "a corrected row that the filter does not take is copied",
        "spark_jobs/quarantine/row_filter.py",
        "return [change for record in corrected for change in _changes(row_filter, record, schema)]",
        "return list(corrected)",
        (FILTERED,),
    ),
    Mutant(
        "a corrected row whose filter cannot be tried is copied",
        "spark_jobs/quarantine/row_filter.py",
        "        if name not in columns:\n",
        "        if False:\n",
        (FILTERED,),
    ),
    Mutant(
        "a given value is stored as JSON reads it",
        "airflow_cdc_provider/core/decisions/corrections.py",
        "        return canonical_value(text, column.type)\n",
        "        return json.loads(text)\n",
        OPERATOR,
    ),
    Mutant(
        "a given time without a zone is UTC",
        "airflow_cdc_provider/core/columns/given_values.py",
        "    if (datetime.fromisoformat(text).tzinfo is not None) is not zone:\n",
        "    if (datetime.fromisoformat(text).tzinfo is not None) and not zone:\n",
        ("tests/connectors/test_given_values.py",),
    ),
    Mutant(
        "a correction moves a change to another row",
        "airflow_cdc_provider/core/decisions/corrections.py",
        "    if other:\n",
        "    if other and not record:\n",
        ("tests/core/test_corrections.py",),
    ),
    Mutant(
        "a decimal of all its digits is taken for one with more",
        "airflow_cdc_provider/core/columns/casts.py",
        "number.copy_abs() >=",
        "abs(number) >=",
        ("tests/connectors/test_given_values.py",),
    ),
    Mutant(
        "a bad record is removed while a version names it",
        "airflow_cdc_provider/staging/change_log.py",
        "if record.id not in quarantined and record.window <= applied:",
        "if record.window <= applied:",
        OPERATOR,
    ),
    Mutant(
        "a decision under the key of another command takes effect",
        "airflow_cdc_provider/control/quarantine_commands.py",
        "    if not same:\n        raise key_used(first)\n",
        "    assert same or first\n",
        OPERATOR,
    ),
    Mutant(
        "a repeated decision is also about records that came since",
        "airflow_cdc_provider/control/quarantine_commands.py",
        "    if key and (first :=",
        "    if not key and (first :=",
        OPERATOR,
    ),
    Mutant(
        "a repeated replay may have other values",
        "airflow_cdc_provider/control/quarantine_commands.py",
        '    if same and asked["records"]:',
        '    if not same and asked["records"]:',
        OPERATOR,
    ),
)
