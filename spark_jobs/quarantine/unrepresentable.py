"""Values that a column of the target cannot hold: looked for only where they have stopped a batch."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import RecordKey
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type, try_from_text
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.folds.keyed import own_key

NOT_REPRESENTABLE = "CDC_UNFIT"
"""What a job dies of where a value of the column's Spark type is none of the target's."""

DELETE = Operation.DELETE.value


def guarded(rows: DataFrame, schema: TableSchema, tables: TargetTables) -> DataFrame:
    """Staged rows that raise where the target would refuse one of their values."""
    refused = {c.name: tables.unsupported_condition(c, c.name in schema.key, quoted(c.name)) for c in schema.columns}
    kinds = {c.name: column_type(c.type) for c in schema.columns}
    return rows.select(
        *(
            F.expr(
                f"IF({refused[name]}, CAST(raise_error('{NOT_REPRESENTABLE}') AS {kinds[name]}), {quoted(name)})"
            ).alias(name)
            if refused.get(name)
            else F.col(quoted(name))
            for name in rows.columns
        )
    )


def unrepresentable_records(records: DataFrame, images: ImageColumns, tables: TargetTables) -> dict[RecordKey, str]:
    """The change records that hold a value which the target cannot, and the words for that. ``images`` says what the
    target will hold."""
    schema = images.schema
    gone = F.col("op") == DELETE
    texts = images.texts(F.when(~gone, F.col("after")) if schema.key else F.coalesce("after", "before"))
    told = records.select(
        F.coalesce(own_key(), F.lit("")).alias("k"),
        "order_key",
        texts.alias("v"),
        images.texts(F.col("before")).alias("w"),
        images.keys(own_key()).alias("keys"),
    )
    complaints = [_complaint(column, f"v.{quoted(column.name)}", tables, schema) for column in schema.columns]
    if schema.key:
        complaints += [
            _complaint(schema.column(name), f"keys[{at}]", tables, schema) for at, name in enumerate(schema.key)
        ]
    else:
        complaints += [_complaint(column, f"w.{quoted(column.name)}", tables, schema) for column in schema.columns]
    # One array and no nested choice: planning that would take twice as long with every column.
    found = told.withColumn("unfit", F.get(F.array_compact(F.array(*complaints)), F.lit(0)))
    rows = found.where("unfit IS NOT NULL").select("k", "order_key", "unfit").distinct().collect()
    return {RecordKey(row["k"], row["order_key"]): _words(schema.column(row["unfit"])) for row in rows}


def _words(column: Column) -> str:
    return f"column {column.name} ({column.type}) of the target cannot hold what came"


def _complaint(column: Column, text: str, tables: TargetTables, schema: TableSchema) -> SparkColumn:
    """The name of the column where the text is no value of it, else NULL."""
    value = try_from_text(text, column.type)
    refused = tables.unsupported_condition(column, column.name in schema.key, f"({value})")
    unfit = f"{text} IS NOT NULL AND ({value} IS NULL{f' OR {refused}' if refused else ''})"
    return F.when(F.expr(unfit), F.lit(column.name))
