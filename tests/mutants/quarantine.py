"""Bad records and what waits for them."""

from __future__ import annotations

from tests.mutants.breakage import Breakage

KEYED = "tests/spark/test_quarantine.py"
WAITS = f"{KEYED}::test_a_bad_record_and_its_key_wait_and_everything_else_goes_on"
PLACES = f"{KEYED}::test_records_at_one_place_are_told_apart_by_their_keys"
TOGETHER = f"{KEYED}::test_rows_that_moved_without_all_columns_wait_together"
STOPS = f"{KEYED}::test_a_bad_record_stops_the_table_before_its_window"
TOO_MANY = f"{KEYED}::test_too_many_bad_records_or_one_of_any_key_stop_the_table_too"
DECODE = "tests/connectors/test_postgres_decode.py"
PURE = "tests/core/test_quarantine.py"
OPERATOR = "tests/provider/test_quarantine.py"

QUARANTINE = (
    Breakage(
        "what comes behind a bad record does not wait",
        "spark_jobs/quarantine/parking.py",
        "applied = joined.where(~waits & F.col",
        "applied = joined.where(F.col",
        (WAITS,),
    ),
    Breakage(
        "the other half of a move does not wait",
        "spark_jobs/quarantine/parking.py",
        "set(_linked_halves(entries, cuts)) - marks if parking.moves and cuts else set()",
        "set[Mark]()",
        (TOGETHER,),
    ),
    Breakage(
        "a bad record takes along all that stand at its place",
        "spark_jobs/quarantine/partitioning.py",
        '(F.coalesce(key_column(), F.lit("")) == F.col("drop_key")) & (F.col("order_key") == F.col("drop_order"))',
        'F.col("order_key") == F.col("drop_order")',
        (PLACES,),
    ),
    Breakage(
        "a partial change lets a key go",
        "spark_jobs/quarantine/parking.py",
        '(F.col("op").isin(*IMAGES) & F.col("after_complete"))',
        'F.col("op").isin(*IMAGES)',
        (WAITS,),
    ),
    Breakage(
        "an unreadable record is skipped",
        "spark_jobs/batches/builder.py",
        "unreadable = unreadable_records(self.job.log, self.plan.windows, self._after)",
        "unreadable: list[BadRecord] = []",
        (WAITS, STOPS),
    ),
    Breakage(
        "letting go raises no fence",
        "spark_jobs/merge.py",
        "    if batch.window == control.window:\n        return replace(record, fence=control.fence + 1)\n",
        "",
        ("tests/core/test_naming.py",),
    ),
    Breakage(
        "a bad record whose key nobody knows is put aside",
        "spark_jobs/quarantine/partitioning.py",
        "count <= limit and not keyless",
        "count <= limit",
        (TOO_MANY,),
    ),
    Breakage(
        "bad records without limit",
        "airflow_cdc_provider/core/log/quarantine.py",
        "return max(limits.max_rows, int(limits.max_share * records))",
        "return max(limits.max_rows, records)",
        (PURE,),
    ),
    Breakage(
        "the bytes of a message are lost",
        "airflow_cdc_provider/connectors/sources/postgres/dead_letters.py",
        "UndecodedRecord(CODEC, base64_of(data), ",
        "UndecodedRecord(CODEC, base64_of(data[:4]), ",
        (DECODE,),
    ),
    Breakage(
        "the oldest decision counts",
        "airflow_cdc_provider/core/decisions/operator_decisions.py",
        "sorted(matching, key=lambda decision: decision.id)",
        "sorted(matching, key=lambda decision: decision.id, reverse=True)",
        (PURE,),
    ),
    Breakage(
        "a request asks before the decision stands",
        "airflow_cdc_provider/cli/quarantine.py",
        "    record_decisions(replicator, chosen, decision_kind, values, args.reason, current_user())\n",
        "",
        (OPERATOR,),
    ),
    Breakage(
        "a bad record is removed while a version names it",
        "airflow_cdc_provider/staging/change_log.py",
        "if record.id not in quarantined and record.window <= applied:",
        "if record.window <= applied:",
        (OPERATOR,),
    ),
)
