"""Writes the carry-over that the commit of a batch names, and the records in quarantine."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from airflow_cdc_provider.core.log.carry_over import CarryOver
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.quarantine.bad_records import BadRecord, write_bad_records, write_listing
from spark_jobs.quarantine.carry_over import write_carry


def new_carry(batch: BatchInput, waiting: DataFrame | pa.Table, bad: Sequence[BadRecord]) -> CarryOver:
    """``waiting``: all records of the carry-over. ``bad``: those that may be in quarantine."""
    log, table, attempt = batch.job.log, batch.task.table, batch.job.step.attempt
    dropped = batch.dropped_columns
    for schema in dropped.schemas:
        log.write_schema(schema)
    carry = write_listing(log, table, attempt, write_carry(log, table, attempt, dropped.without(waiting)), bad)
    if carry.quarantined:
        ids = {record.id for record in log.quarantined_records(carry)}
        write_bad_records(log, table, [one for one in bad if one.id in ids and not one.since], batch.now)
    return carry
