"""The SQL dialect of BigQuery."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from airflow_cdc_provider.core.table.floats import as_stored
from airflow_cdc_provider.core.table.merge_plan import STAGED_ALIAS as S
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.special_values import FLOATS, NONE, Specials
from airflow_cdc_provider.targets.bigquery import names
from airflow_cdc_provider.targets.bigquery.options import Json, Partition
from airflow_cdc_provider.targets.bigquery.partitions import partition_expression
from airflow_cdc_provider.targets.database.names import own_control_table
from airflow_cdc_provider.targets.database.update_from import UpdatesFrom
from airflow_cdc_provider.targets.restrictions import Restriction
from airflow_cdc_provider.targets.sparksql.names import quoted as spark_name

TYPES: dict[Kind, str] = {
    Kind.BOOLEAN: "BOOL",
    Kind.INT16: "INT64",
    Kind.INT32: "INT64",
    Kind.INT64: "INT64",
    Kind.FLOAT32: "FLOAT64",
    Kind.FLOAT64: "FLOAT64",
    Kind.TEXT: "STRING",
    Kind.UUID: "STRING",
    Kind.BYTES: "BYTES",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "DATETIME",
    Kind.TIMESTAMPTZ: "TIMESTAMP",
}
NUMERIC_DIGITS, NUMERIC_SCALE = 29, 9
"""NUMERIC has 29 digits before the point and 9 after it; BIGNUMERIC has 38 and 38."""

BIGNUMERIC_DIGITS, BIGNUMERIC_SCALE = 38, 38
CLUSTER_COLUMNS = 4
NOT_CLUSTERED = frozenset({Kind.FLOAT32, Kind.FLOAT64, Kind.BYTES})
STAGED_DAYS = 7
"""After this time BigQuery drops a staging table by itself."""

ESCAPES = {**{code: f"\\u{code:04x}" for code in range(32)}, ord("\\"): r"\\", ord("'"): r"\'"}


@dataclass(frozen=True)
class BigQuerySql(UpdatesFrom):
    project: str
    dataset: str
    json: Json = Json.TEXT
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    order_type = "STRING"
    flag_type = "BOOL"
    short_text_type = "STRING"
    long_text_type = "STRING"
    integer_type = "INT64"
    primary_key = "PRIMARY KEY ({}) NOT ENFORCED"
    record_columns = ("record",)
    parameter = "%s"
    staged_rows_need_index = False

    def quoted(self, name: str) -> str:
        return names.quoted(names.column_name(name))

    def column_id(self, name: str) -> str:
        return self.quoted(name).lower()

    def table(self, name: str) -> str:
        return names.quoted(self.project, self.dataset, name)

    def control_table(self, target_table: str) -> str:
        """Of two transactions that change one table, BigQuery cancels one."""
        return own_control_table(target_table)

    def column_type(self, column: Column, in_key: bool) -> str:
        kind = column.type.kind
        if kind is Kind.DECIMAL:
            return decimal_type(column.type)
        if kind is Kind.JSON:
            return "JSON" if self.json is Json.JSON and not in_key else "STRING"
        return TYPES[kind]

    def literal(self, canonical: object, column: Column) -> str:
        kind = unparameterized(self.column_type(column, in_key=False))
        if canonical is None:
            return f"CAST(NULL AS {kind})"
        canonical = as_stored(canonical, column.type.kind)
        text = text_literal(canonical if isinstance(canonical, str) else json.dumps(canonical))
        if kind == "BYTES":
            return f"FROM_BASE64({text})"
        return f"PARSE_JSON({text})" if kind == "JSON" else f"CAST({text} AS {kind})"

    def equal(self, column: Column, left: str, right: str) -> str:
        """NaN is no equal of itself."""
        plain = not column.nullable and column.type.kind not in FLOATS
        return f"{left} = {right}" if plain else same(left, right)

    def same_row(self, columns: Sequence[Column], row: str) -> str:
        left, right = (", ".join(f"{alias}.{self.quoted(column.name)}" for column in columns) for alias in (row, S))
        return same(f"STRUCT({left})", f"STRUCT({right})")

    def delete(self, target: str, staged: str, condition: str) -> str:
        return self.delete_where(target, f"EXISTS (SELECT 1 FROM {staged} AS {S} WHERE {condition})")

    def create_table(
        self, name: str, columns: Sequence[str], comment: str, staging: bool, layout: str = ""
    ) -> list[str]:
        statement = f"CREATE TABLE IF NOT EXISTS {self.table(name)} ({', '.join(columns)}) DEFAULT COLLATE ''{layout}"
        return [f"{statement} OPTIONS({self.table_options(comment, self.labels, staging)})"]

    def table_options(self, comment: str, labels: Mapping[str, str], staging: bool = False) -> str:
        listed = ", ".join(f"({text_literal(key)}, {text_literal(value)})" for key, value in sorted(labels.items()))
        options = [f"description = {text_literal(comment)}", f"labels = [{listed}]"]
        if staging:
            expiration = f"TIMESTAMP_ADD(CURRENT_TIMESTAMP(), INTERVAL {STAGED_DAYS} DAY)"
            options.append(f"expiration_timestamp = {expiration}")
        return ", ".join(options)

    def layout(self, schema: TableSchema, cluster_by: Sequence[str]) -> str:
        partition = self.partitions.get(schema.table)
        clauses = ""
        if partition:
            column = schema.column(partition.column)
            clauses += f" PARTITION BY {partition_expression(partition, column, self.quoted(column.name))}"
        if clustered := self.clustering(schema, cluster_by):
            clauses += f" CLUSTER BY {', '.join(map(self.quoted, clustered))}"
        return clauses

    def clustering(self, schema: TableSchema, cluster_by: Sequence[str]) -> tuple[str, ...]:
        """The columns by which a copy is clustered: by default as many of its key as can be."""
        wanted = cluster_by or [name for name in schema.key if self.clusters(schema, name)]
        return tuple(wanted[:CLUSTER_COLUMNS])

    def clusters(self, schema: TableSchema, name: str) -> bool:
        column = schema.column(name)
        return column.type.kind not in NOT_CLUSTERED and self.column_type(column, name in schema.key) != "JSON"

    def restriction(self, column: Column, in_key: bool) -> Restriction | None:
        return None

    def unsupported_values(self, column: Column, in_key: bool) -> Specials:
        return NONE

    def read_expressions(self, column: Column) -> tuple[str, str]:
        """Rows are read as texts, except for floats. Dates are days and timestamps microseconds since 1970."""
        name, text = self.quoted(column.name), spark_name(column.name)
        match column.type.kind:
            case Kind.BYTES:
                return name, f"unhex({text})"
            case Kind.DATE:
                return name, f"date_from_unix_date(CAST({text} AS INT))"
            case Kind.TIMESTAMP:
                return name, f"CAST(timestamp_micros(CAST({text} AS BIGINT)) AS TIMESTAMP_NTZ)"
            case Kind.TIMESTAMPTZ:
                return name, f"timestamp_micros(CAST({text} AS BIGINT))"
            case Kind.BOOLEAN:
                return name, f"CAST(CAST({text} AS INT) AS BOOLEAN)"
            case _:
                return name, ""


def same(left: str, right: str) -> str:
    """An equality of two expressions, for which NULL equals NULL: without one BigQuery refuses outer and anti joins."""
    return f"TO_JSON_STRING({left}) = TO_JSON_STRING({right})"


def decimal_type(kind: LogicalType) -> str:
    """NUMERIC where it is wide enough, else BIGNUMERIC, else text."""
    scale = kind.scale or 0
    precision = max(kind.precision or 0, scale, 1)
    if scale <= NUMERIC_SCALE and precision - scale <= NUMERIC_DIGITS:
        return f"NUMERIC({precision},{scale})"
    if scale <= BIGNUMERIC_SCALE and precision - scale <= BIGNUMERIC_DIGITS:
        return f"BIGNUMERIC({precision},{scale})"
    return "STRING"


def unparameterized(kind: str) -> str:
    """The type in a CAST, which takes no parameters."""
    return kind.partition("(")[0]


def text_literal(text: str) -> str:
    return f"'{text.translate(ESCAPES)}'"
