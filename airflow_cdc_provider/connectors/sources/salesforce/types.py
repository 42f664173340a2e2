"""What ``describe`` says of an object, as a table: columns, types, and what the stream cannot tell of them. Pure.

A compound field (an address, a place, a person's name) is no column; its components are. Numbers are decimals of the
described scale. A value without exact counterpart (a time of day, several picked values joined by ``;``) is text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema

ID = "Id"
IS_DELETED = "IsDeleted"

KINDS: Mapping[str, Kind] = {
    "boolean": Kind.BOOLEAN,
    "int": Kind.INT32,
    "long": Kind.INT64,
    "date": Kind.DATE,
    "datetime": Kind.TIMESTAMPTZ,
}
NUMBERS = frozenset({"double", "currency", "percent"})
NO_COLUMNS = frozenset({"address", "location", "base64", "complexvalue"})
"""Compounds, whose components are columns; binary content and structured metadata, which bulk queries do not carry."""

MOST_DIGITS = 38

NEVER_SENT = frozenset({"SystemModstamp", "LastActivityDate", "LastViewedDate", "LastReferencedDate", "PhotoUrl"})
"""Columns that change events do not carry."""

MODSTAMPS = ("SystemModstamp", "LastModifiedDate", "CreatedDate", "LoginTime")
"""Which column tells of changes, best first."""


@dataclass(frozen=True)
class ObjectSchema:
    """An object as this user sees it now.

    ``schema`` has every column that can be copied. ``compounds``: component -> its compound field. ``snapshot_only``
    are columns whose changes raise no event: they are as of the last copy or fetch. ``modstamp`` is the column
    that tells of changes, empty where there is none. ``replicable``: Salesforce tells which of its records were
    deleted.
    """

    schema: TableSchema
    compounds: Mapping[str, str] = field(default_factory=dict)
    snapshot_only: frozenset[str] = frozenset()
    modstamp: str = ""
    queryable: bool = True
    replicable: bool = True


def described(answer: Mapping[str, Any]) -> ObjectSchema:
    """``answer`` is the JSON of ``sobjects/<name>/describe``."""
    fields: Sequence[Mapping[str, Any]] = answer["fields"]
    compounds = {f["name"]: f["compoundFieldName"] for f in fields if _is_component(f)}
    whole_names = {f["name"] for f in fields if f["name"] in compounds.values()}
    columns = tuple(_column(f) for f in fields if f["type"] not in NO_COLUMNS)
    names = {column.name for column in columns}
    return ObjectSchema(
        TableSchema(answer["name"], columns, (ID,) if ID in names else ()),
        {name: compound for name, compound in compounds.items() if name in names},
        frozenset(
            f["name"] for f in fields if f["name"] in names and (f["name"] in NEVER_SENT or _is_formula(f, whole_names))
        ),
        next((name for name in MODSTAMPS if name in names), ""),
        bool(answer.get("queryable", True)),
        bool(answer.get("replicateable", True)),
    )


def _is_formula(field: Mapping[str, Any], joined: Set[str]) -> bool:
    """A name that is joined of its parts may be described as calculated, too; its changes do raise events."""
    return bool(field.get("calculated")) and field["name"] not in joined


def _is_component(field: Mapping[str, Any]) -> bool:
    compound = field.get("compoundFieldName")
    return bool(compound) and compound != field["name"]


def _column(field: Mapping[str, Any]) -> Column:
    native = f"{field['type']}, calculated" if field.get("calculated") else field["type"]
    return Column(field["name"], logical_type(field), bool(field.get("nillable", True)), native)


def logical_type(field: Mapping[str, Any]) -> LogicalType:
    if field["type"] in NUMBERS:
        return _number(field)
    return LogicalType(KINDS.get(field["type"], Kind.TEXT))


def _number(field: Mapping[str, Any]) -> LogicalType:
    """A formula may exceed its precision, never its scale as it is shown."""
    precision, scale = field.get("precision") or 0, field.get("scale") or 0
    if not 0 <= scale <= precision <= MOST_DIGITS or not precision:
        return LogicalType(Kind.FLOAT64)
    return LogicalType(Kind.DECIMAL, MOST_DIGITS if field.get("calculated") else precision, scale)
