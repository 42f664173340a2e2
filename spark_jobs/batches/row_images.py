"""Row images of the change log as Spark columns: from canonical JSON to text per column, from text to typed values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from airflow_cdc_provider.core.table.schema import Column, TableSchema
from airflow_cdc_provider.targets.sparksql.names import quoted
from airflow_cdc_provider.targets.sparksql.types import from_text

FAILFAST = {"mode": "FAILFAST"}
"""A value that cannot be parsed fails the job; by default Spark returns NULL for it."""


@dataclass(frozen=True)
class ImageColumns:
    """``schema`` is the schema of the target after the batch; ``schemas`` are those the records were decoded with, by
    id."""

    schema: TableSchema
    schemas: Mapping[str, TableSchema]

    def texts(self, image: SparkColumn) -> SparkColumn:
        """The image as a struct with the text of each column; NULL for NULL values and for columns that are not in the
        image. Columns added after the record's schema have their initial value."""
        parsed = self.parsed(image)
        added = [column for column in self.schema.columns if column.initial is not None and self._without(column)]
        if not added:
            return parsed
        return F.struct(
            *(
                F.coalesce(self.initial(column, F.col("schema_id")), parsed.getField(column.name)).alias(column.name)
                if column in added
                else parsed.getField(column.name).alias(column.name)
                for column in self.schema.columns
            )
        )

    def parsed(self, image: SparkColumn) -> SparkColumn:
        """The image as a struct with the text of each column; NULL where NULL or not in the image."""
        fields = StructType([StructField(name, StringType()) for name in self.schema.names])
        return F.from_json(image, fields, FAILFAST)

    def initials(self) -> dict[str, dict[str, str]]:
        """By schema id, the initial values of the columns that are younger than the schema, as JSON."""
        younger = [column for column in self.schema.columns if column.initial is not None]
        return {
            one: {column.name: column.initial or "" for column in younger if column.name not in schema.names}
            for one, schema in self.schemas.items()
        }

    def initial(self, column: Column, schema_id: SparkColumn) -> SparkColumn:
        """The text of a column in rows of an older schema; NULL for rows of a schema that has the column."""
        return F.when(schema_id.isin(*self._without(column)), F.lit(initial_text(column)))

    def keys(self, key: SparkColumn) -> SparkColumn:
        """A canonical key as an array of texts."""
        return F.from_json(key, ArrayType(StringType()), FAILFAST)

    def _without(self, column: Column) -> tuple[str, ...]:
        return tuple(sorted(schema_id for schema_id, schema in self.schemas.items() if column.name not in schema.names))


def initial_text(column: Column) -> str | None:
    """The initial value of an added column as the text of its canonical value."""
    if column.initial is None:
        return None
    value = json.loads(column.initial)
    return value if isinstance(value, str) or value is None else column.initial


def typed(column: Column, text: str) -> SparkColumn:
    """``text``: an SQL expression of the text."""
    return F.expr(from_text(text, column.type)).alias(column.name)


def typed_columns(schema: TableSchema, keys: str | None, texts: str) -> list[SparkColumn]:
    """All columns of a staged row. ``keys``: SQL of the array of key texts; ``texts``: SQL of the struct of texts."""
    key_index = {name: number for number, name in enumerate(schema.key)} if keys else {}
    return [
        typed(column, f"{keys}[{key_index[column.name]}]")
        if column.name in key_index
        else typed(column, f"{texts}.{quoted(column.name)}")
        for column in schema.columns
    ]
