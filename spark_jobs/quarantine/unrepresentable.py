"""Values that a column of the target cannot represent: searched for only after they have failed a batch."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.log.quarantine import RecordKey
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.targets.needs_spark import NeedsSpark
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import column_type, try_from_text
from airflow_cdc_provider.targets.target import TargetTables
from spark_jobs.batches.row_images import ImageColumns
from spark_jobs.folds.record_columns import own_key

UNREPRESENTABLE = "CDC_UNFIT"
"""The error text of a query with a value that is valid for Spark's type but not for the target's."""

DELETE = Operation.DELETE.value


def with_value_checks(rows: DataFrame, schema: TableSchema, tables: TargetTables) -> DataFrame:
    """Staged rows that fail the query where the target would refuse a value."""
    refused = {column.name: _refusal(column, quoted(column.name), tables, schema) for column in schema.columns}
    kinds = {c.name: column_type(c.type) for c in schema.columns}
    return rows.select(
        *(
            F.expr(
                f"IF({refused[name]}, CAST(raise_error('{UNREPRESENTABLE}') AS {kinds[name]}), {quoted(name)})"
            ).alias(name)
            if refused.get(name)
            else F.col(quoted(name))
            for name in rows.columns
        )
    )


def require_representable(rows: pa.Table, schema: TableSchema, tables: TargetTables) -> None:
    """Raises NeedsSpark where the target would refuse a value: Spark finds out which one."""
    for column in schema.columns:
        restriction = tables.restriction(column, column.name in schema.key)
        if restriction and restriction.refuses_any(rows[column.name]):
            raise NeedsSpark("values that the target cannot hold")


def unrepresentable_records(records: DataFrame, images: ImageColumns, tables: TargetTables) -> dict[RecordKey, str]:
    """The change records with a value that the target cannot represent, each with the reason. ``images`` has the schema
    of the target."""
    schema = images.schema
    deleted = F.col("op") == DELETE
    texts = images.texts(F.when(~deleted, F.col("after")) if schema.key else F.coalesce("after", "before"))
    parsed = records.select(
        F.coalesce(own_key(), F.lit("")).alias("k"),
        "order_key",
        texts.alias("v"),
        images.texts(F.col("before")).alias("w"),
        images.keys(own_key()).alias("keys"),
    )
    columns = [_unrepresentable_column(column, f"v.{quoted(column.name)}", tables, schema) for column in schema.columns]
    if schema.key:
        columns += [
            _unrepresentable_column(schema.column(name), f"keys[{at}]", tables, schema)
            for at, name in enumerate(schema.key)
        ]
    else:
        columns += [
            _unrepresentable_column(column, f"w.{quoted(column.name)}", tables, schema) for column in schema.columns
        ]
    # One array instead of nested CASE: planning nested ones takes twice as long with every column.
    checked = parsed.withColumn("unfit", F.get(F.array_compact(F.array(*columns)), F.lit(0)))
    rows = checked.where("unfit IS NOT NULL").select("k", "order_key", "unfit").distinct().collect()
    return {RecordKey(row["k"], row["order_key"]): _reason(schema.column(row["unfit"])) for row in rows}


def _reason(column: Column) -> str:
    return f"column {column.name} ({column.type}) of the target cannot represent the value"


def _unrepresentable_column(column: Column, text: str, tables: TargetTables, schema: TableSchema) -> SparkColumn:
    """The name of the column where the text is not a value of its type, else NULL."""
    value = try_from_text(text, column.type)
    refused = _refusal(column, f"({value})", tables, schema)
    unfit = f"{text} IS NOT NULL AND ({value} IS NULL{f' OR {refused}' if refused else ''})"
    return F.when(F.expr(unfit), F.lit(column.name))


def _refusal(column: Column, value: str, tables: TargetTables, schema: TableSchema) -> str:
    """Spark SQL; empty where the target refuses no value."""
    restriction = tables.restriction(column, column.name in schema.key)
    return restriction.refusal_sql(value) if restriction else ""
