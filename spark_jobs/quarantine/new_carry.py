"""Writes the carry-over that the commit of a batch names, and the records in quarantine."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.carry_over import CarryOver
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.late_changes import unknown_meaning
from spark_jobs.quarantine.bad_records import BadRecord, write_bad_records, write_listing
from spark_jobs.quarantine.carry_over import write_carry


def new_carry(batch: BatchInput, waiting: DataFrame | pa.Table, bad: Sequence[BadRecord]) -> CarryOver:
    """``waiting``: all records of the carry-over. ``bad``: those that may be in quarantine. Raises IntegrityBroken
    (TGT043)."""
    _require_no_former_names(batch, waiting)
    log, table, attempt = batch.job.log, batch.task.table, batch.job.step.attempt
    dropped = batch.dropped_columns
    for schema in dropped.schemas:
        log.write_schema(schema)
    carry = write_listing(log, table, attempt, write_carry(log, table, attempt, dropped.without(waiting)), bad)
    if carry.quarantined:
        ids = {record.id for record in log.quarantined_records(carry)}
        write_bad_records(log, table, [one for one in bad if one.id in ids and not one.since], batch.now)
    return carry


def _require_no_former_names(batch: BatchInput, waiting: DataFrame | pa.Table) -> None:
    """A record that waits gets the names that columns get while it waits. At the beginning, those of a late change have
    other names already."""
    renaming = sorted(batch.plan.late.renaming)
    if not renaming:
        return
    if isinstance(waiting, pa.Table):
        begins = pc.or_kleene(pc.is_null(waiting["since"]), pc.equal(waiting["since"], batch.now))
        has_any = bool(pc.any(pc.and_(begins, pc.is_in(waiting["schema_id"], pa.array(renaming)))).as_py())
    else:
        begins = F.col("since").isNull() | (F.col("since") == batch.now)
        has_any = bool(waiting.where(begins & F.col("schema_id").isin(renaming)).take(1))
    if has_any:
        found = "a change from before a column was renamed, which would wait in quarantine or behind such a record"
        allowed = "late changes of the present names, or such that can be applied at once"
        raise unknown_meaning(batch.task, batch.control, batch.plan.window, found, allowed)
