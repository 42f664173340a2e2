"""Current rows of a history beside rows of the source, as Spark frames."""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from airflow_cdc_provider.core.table.history import IS_CURRENT, SEQUENCE, VALID_FROM, VALID_TO
from airflow_cdc_provider.core.table.merge_plan import KNOWN, LIVE, OP, ORDER
from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import FLOATING, column_type, initial_value


def end_rows(schema: TableSchema, versions: DataFrame, at: SparkColumn, order: SparkColumn) -> DataFrame:
    """Rows that end these current versions (``prefixed``) and leave their values as they are."""
    return versions.select(
        *(
            (
                F.col(f"_cdc_o{number}") if column.name in schema.key else F.lit(None).cast(column_type(column.type))
            ).alias(column.name)
            for number, column in enumerate(schema.columns)
        ),
        F.col("_cdc_o_sequence").alias(SEQUENCE),
        F.lit(None).cast("timestamp").alias(VALID_FROM),
        at.alias(VALID_TO),
        F.lit(False).alias(IS_CURRENT),
        order.alias(ORDER),
        F.lit(LIVE).alias(OP),
        F.array(*map(F.lit, ending_columns(schema))).alias(KNOWN),
    )


def prefixed(schema: TableSchema, rows: DataFrame, others: Collection[str] = ()) -> DataFrame:
    """Rows of the target with other names: ``_cdc_o0``, ``_cdc_o1`` … in the order of the schema. A column that the
    target lacks has its initial value. ``others``: columns that keep their names."""
    present = {name.lower() for name in rows.columns}
    more = {SEQUENCE: "_cdc_o_sequence", VALID_FROM: "_cdc_o_from"}
    return rows.select(
        *(
            (F.col(quoted(column.name)) if column.name.lower() in present else F.expr(initial_value(column))).alias(
                f"_cdc_o{number}"
            )
            for number, column in enumerate(schema.columns)
        ),
        *(F.col(name).alias(alias) for name, alias in more.items() if name in present),
        *others,
    )


def same_key(schema: TableSchema) -> SparkColumn:
    conditions = (
        F.col(quoted(column.name)).eqNullSafe(F.col(f"_cdc_o{number}"))
        for number, column in enumerate(schema.columns)
        if column.name in schema.key
    )
    return reduce(lambda left, right: left & right, conditions)


def all_equal(schema: TableSchema, without: Collection[str]) -> SparkColumn:
    """``without``: columns that do not count: they tell of a change, and a full copy does not have their values."""
    return F.struct(*as_values(schema, without)).eqNullSafe(
        F.struct(
            *(
                _value(column, F.col(f"_cdc_o{number}")).alias(column.name)
                for number, column in enumerate(schema.columns)
                if column.name not in without
            )
        )
    )


def as_values(schema: TableSchema, without: Collection[str]) -> list[SparkColumn]:
    """Columns of a row that are equal only for equal values: zeros differ by their sign, and NaN is like NaN."""
    return [
        _value(column, F.col(quoted(column.name))).alias(column.name)
        for column in schema.columns
        if column.name not in without
    ]


def ending_columns(schema: TableSchema) -> list[str]:
    """The columns of which a row that ends a version has values."""
    return [*schema.key, SEQUENCE, VALID_TO, IS_CURRENT]


def _value(column: Column, value: SparkColumn) -> SparkColumn:
    return value.cast("string") if column.type.kind in FLOATING else value
