"""Whether the columns of a table in a lake keep every value of a copy. Pure.

Types are spelled as in Delta's log."""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_cdc_provider.core.table.merge_plan import ORDER
from airflow_cdc_provider.core.table.schema import Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.unfit import Unfit
from airflow_cdc_provider.targets.database.errors import other_columns

TYPES: Mapping[Kind, str] = {
    Kind.BOOLEAN: "boolean",
    Kind.INT16: "short",
    Kind.INT32: "integer",
    Kind.INT64: "long",
    Kind.FLOAT32: "float",
    Kind.FLOAT64: "double",
    Kind.TEXT: "string",
    Kind.JSON: "string",
    Kind.UUID: "string",
    Kind.BYTES: "binary",
    Kind.DATE: "date",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMPTZ: "timestamp",
}
WIDER: Mapping[str, frozenset[str]] = {
    "short": frozenset({"integer", "long", "double"}),
    "integer": frozenset({"long", "double"}),
    "float": frozenset({"double"}),
    "date": frozenset({"timestamp_ntz"}),
}
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
INTEGER_DIGITS: Mapping[str, int] = {"short": 5, "integer": 10, "long": 19}


def type_name(logical: LogicalType) -> str:
    if logical.kind is Kind.DECIMAL:
        return f"decimal({logical.precision},{logical.scale})"
    return TYPES[logical.kind]


def unfit_columns(where: str, types: Mapping[str, str], schema: TableSchema, shared: bool) -> Unfit | None:
    """``types``: of the table, by lower-case name. ``schema``: of the copy."""
    wanted = {column.name: type_name(column.type) for column in schema.columns}
    wanted |= {ORDER: "string"} if schema.key else {}
    found = [f"column {name} is missing" for name in wanted if name.lower() not in types]
    for name, kind in wanted.items():
        given = types.get(name.lower())
        if given is not None and not keeps_values(given, kind):
            found.append(f"column {name} is {given} instead of {kind}")
    return other_columns(where, found, schema, shared) if found else None


def keeps_values(found: str, wanted: str) -> bool:
    if found == wanted:
        return True
    given = DECIMAL.fullmatch(found)
    if given is None:
        return found in WIDER.get(wanted, ())
    least = DECIMAL.fullmatch(wanted)
    digits, scale = map(int, least.groups()) if least else (INTEGER_DIGITS.get(wanted), 0)
    if digits is None:
        return False
    return int(given[2]) >= scale and int(given[1]) - int(given[2]) >= digits - scale
