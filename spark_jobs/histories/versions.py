"""The versions of a batch as rows to merge: new ones are inserted, current ones of the target are ended.

The current versions of the changed rows, and what the changes made of them, are put in order per key. A version begins
with a change of the source's values and ends with the next one; a change that leaves all of them as they were makes no
version. So the versions do not depend on how the change log is cut into batches.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.carry_over import WAITING, Truncate
from airflow_cdc_provider.core.log.change_records import FIELDS
from airflow_cdc_provider.core.table.history import IS_CURRENT, SEQUENCE, VALID_FROM, VALID_TO
from airflow_cdc_provider.core.table.merge_plan import GONE, KNOWN, LIVE, OP, ORDER
from airflow_cdc_provider.core.table.schema import Column, Kind, TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type, initial_value
from spark_jobs.batches.batch_input import BatchInput
from spark_jobs.batches.batch_stats import BatchShape
from spark_jobs.batches.row_images import typed, typed_columns
from spark_jobs.folds.earlier_rows import converted_frame
from spark_jobs.folds.frames import fold_versions_in_tasks
from spark_jobs.folds.parent_rows import MAY_BE_MISSING, ROOT, with_parent_rows
from spark_jobs.folds.record_columns import own_key
from spark_jobs.histories.compared_rows import as_values, ending_columns, prefixed, same_key

COMPARABLE = frozenset({Kind.INT16, Kind.INT32, Kind.INT64, Kind.DECIMAL, Kind.DATE})
AT, OLD, WAITS = "_cdc_at", "_cdc_old", "_cdc_waits"
"""When a change was committed; whether a row is a version of the target; since which change its key waits."""


def staged_versions(
    batch: BatchInput, entries: DataFrame, shape: BatchShape, waiting: DataFrame | None = None
) -> DataFrame:
    """``shape``: of the entries. ``waiting``: the new carry-over, where some records may wait."""
    schema = batch.plan.schema
    changes = _changes(batch, entries, shape).localCheckpoint()
    current = _current(schema, batch.target())
    keys = prefixed(schema, changes)
    within = _near(schema.column(schema.key[0]), changes)
    near = current if batch.truncates else current.where(within)
    together = changes.unionByName(near.join(keys, same_key(schema), "left_semi"))
    if truncates := batch.all_truncates:
        truncated = current if batch.truncates else _of_waiting(batch, current)
        untouched = truncated.join(keys, same_key(schema), "left_anti")
        together = together.unionByName(untouched).unionByName(_truncated(untouched, truncates))
        if waiting is not None:
            together = _without_ends_of_waiting(batch, together, waiting)
    if batch.may_go_back:
        together = together.unionByName(_ended(schema, batch.stored_rows().where(within), keys))
    return _staged(schema, _in_order(schema, together, batch.task.rule.columns.of_changes), batch.version_now)


def _changes(batch: BatchInput, entries: DataFrame, shape: BatchShape) -> DataFrame:
    """The folded changes, with all values. ``ORDER``: of the change."""
    images = batch.images
    folded = fold_versions_in_tasks(entries, batch.version_fold(shape), batch.rows, shape.moved > 0)
    values = folded.select(
        F.col("order_key").alias(ORDER),
        F.col("op").alias(OP),
        F.col("known").alias(KNOWN),
        F.timestamp_micros("at").alias(AT),
        F.col("root").alias(ROOT),
        F.col("root_may_be_missing").alias(MAY_BE_MISSING),
        images.keys(F.col("key")).alias("keys"),
        images.parsed(F.col("image")).alias("v"),
    )
    typed = values.select(*typed_columns(images.schema, "keys", "v"), ORDER, OP, KNOWN, AT, ROOT, MAY_BE_MISSING)
    if shape.incomplete:
        typed = with_parent_rows(typed, images, batch.target, (AT,))
    return typed.drop(ROOT, MAY_BE_MISSING, KNOWN).withColumn(OLD, F.lit(False))


def _current(schema: TableSchema, rows: DataFrame) -> DataFrame:
    """The current versions of the target. A column that the target lacks has its initial value."""
    present = {name.lower() for name in rows.columns}
    return rows.select(
        *(
            F.col(quoted(column.name))
            if column.name.lower() in present
            else F.expr(initial_value(column)).alias(column.name)
            for column in schema.columns
        ),
        F.col(SEQUENCE).alias(ORDER),
        F.lit(LIVE).alias(OP),
        F.col(VALID_FROM).alias(AT),
        F.lit(True).alias(OLD),
    )


def _ended(schema: TableSchema, versions: DataFrame, keys: DataFrame) -> DataFrame:
    """The end of the last version of each changed row that has no current one: a later version begins after it."""
    key = [quoted(name) for name in schema.key]
    of_keys = versions.join(keys, same_key(schema), "left_semi")
    last = of_keys.groupBy(*key).agg(
        F.max(ORDER).alias(ORDER), F.max(VALID_TO).alias(AT), F.bool_or(IS_CURRENT).alias(IS_CURRENT)
    )
    values = [
        F.col(quoted(column.name))
        if column.name in schema.key
        else F.lit(None).cast(column_type(column.type)).alias(column.name)
        for column in schema.columns
    ]
    return last.where(f"NOT {IS_CURRENT}").select(
        *values, ORDER, F.lit(GONE).alias(OP), F.col(AT), F.lit(True).alias(OLD)
    )


def _near(leading: Column, changes: DataFrame) -> SparkColumn:
    """The range of the leading key column in the changes: the target reads only its rows. Texts are left out, because
    databases may compare them in another way."""
    if leading.type.kind not in COMPARABLE:
        return F.lit(True)
    column = F.col(quoted(leading.name))
    least, greatest = changes.agg(F.min(column), F.max(column)).collect()[0]
    within = column.between(F.lit(least), F.lit(greatest)) if least is not None else F.lit(False)
    return within | column.isNull() if leading.nullable else within


def _truncated(current: DataFrame, truncates: Sequence[Truncate]) -> DataFrame:
    """The ends of these versions: each by the first truncate after it."""
    in_order = [
        F.struct(F.lit(one.order_key).alias("order_key"), F.lit(one.at).cast("bigint").alias("at"))
        for one in sorted(truncates)
    ]
    later = F.filter(F.array(*in_order), lambda one: one["order_key"] > F.col(ORDER))
    ended = current.withColumn("_cdc_end", F.get(later, F.lit(0))).where("_cdc_end IS NOT NULL")
    return ended.withColumns(
        {
            ORDER: F.col("_cdc_end.order_key"),
            OP: F.lit(GONE),
            AT: F.timestamp_micros(F.col("_cdc_end.at")),
            OLD: F.lit(False),
        }
    ).drop("_cdc_end")


def _of_waiting(batch: BatchInput, current: DataFrame) -> DataFrame:
    """The versions of rows whose changes have waited, also through truncates that have ended all other versions."""
    schema, waited = batch.plan.schema, _waiting_keys(batch, batch.carried())
    near = current.where(_near(schema.column(schema.key[0]), waited))
    return near.join(prefixed(schema, waited), same_key(schema), "left_semi")


def _without_ends_of_waiting(batch: BatchInput, rows: DataFrame, waiting: DataFrame) -> DataFrame:
    """A row whose changes wait is ended when they are applied, by the truncates that they have waited through: an end
    now would count as later than those changes."""
    schema, waits = batch.plan.schema, _waiting_keys(batch, waiting)
    joined = rows.join(prefixed(schema, waits, (WAITS,)), same_key(schema), "left")
    counts = F.col(OLD) | F.col(WAITS).isNull() | (F.col(ORDER) <= F.col(WAITS))
    return joined.where(counts).select(*map(quoted, rows.columns))


def _waiting_keys(batch: BatchInput, carried: DataFrame) -> DataFrame:
    """The keys of records that wait. ``WAITS``: the first order key of each."""
    schema = batch.plan.schema
    records = carried.where(F.col("kind").isin(*WAITING)).select(*FIELDS)
    by_key = converted_frame(records, batch.conversions).groupBy(own_key().alias("k"))
    first = by_key.agg(F.min("order_key").alias(WAITS)).withColumn("keys", batch.images.keys(F.col("k")))
    columns = [typed(schema.column(name), f"keys[{number}]").alias(name) for number, name in enumerate(schema.key)]
    return first.select(*columns, WAITS)


def _in_order(schema: TableSchema, rows: DataFrame, of_changes: Collection[str]) -> DataFrame:
    """Rows that differ from the one before, with order key and time of the next one. No row precedes in time the one
    before it: clocks may go back, and that of a full copy is another one. Changes that are not newer than the version
    of the target were delivered again. ``of_changes``: columns that do not count, each change has other values."""
    of_key = Window.partitionBy(*_key(schema))
    by_key = of_key.orderBy(ORDER)
    before = F.lag("_cdc_values").over(by_key)
    times = F.max(AT).over(by_key.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    applied = F.coalesce(F.max(F.when(F.col(OLD), F.col(ORDER))).over(of_key), F.lit(""))
    newer = rows.withColumn("_cdc_applied", applied).where(F.col(OLD) | (F.col(ORDER) > F.col("_cdc_applied")))
    compared = newer.withColumn("_cdc_values", F.struct(OP, *as_values(schema, of_changes)))
    marked = compared.withColumns({"_cdc_same": before.eqNullSafe(F.col("_cdc_values")), AT: times})
    kept = marked.where("NOT _cdc_same")
    return kept.withColumns({"_cdc_next": F.lead(ORDER).over(by_key), "_cdc_next_at": F.lead(AT).over(by_key)})


def _staged(schema: TableSchema, rows: DataFrame, now_us: int) -> DataFrame:
    """Rows to insert, and rows that end versions of the target. ``now_us``: for unknown times."""
    ends = F.col("_cdc_next").isNotNull()
    now = F.timestamp_micros(F.lit(now_us))
    versions = rows.where((F.col(OP) == LIVE) & (ends | ~F.col(OLD)))
    return versions.select(
        *(
            F.col(quoted(column.name))
            if column.name in schema.key
            else F.when(~F.col(OLD), F.col(quoted(column.name))).alias(column.name)
            for column in schema.columns
        ),
        F.col(ORDER).alias(SEQUENCE),
        F.coalesce(AT, now).alias(VALID_FROM),
        F.when(ends, F.coalesce("_cdc_next_at", now)).alias(VALID_TO),
        (~ends).alias(IS_CURRENT),
        F.coalesce("_cdc_next", ORDER).alias(ORDER),
        F.lit(LIVE).alias(OP),
        F.when(F.col(OLD), F.array(*map(F.lit, ending_columns(schema)))).alias(KNOWN),
    )


def _key(schema: TableSchema) -> list[str]:
    return [quoted(name) for name in schema.key]
