"""The ``describe`` response of an object as a table: columns, types, and which columns the stream does not carry. Pure.

A compound field (an address, a geolocation, a person's name) is no column; its components are. Numbers are decimals of
the described scale. A type without exact counterpart (time of day, multi-select picklist) is text. The list of types is
closed: of another type it is not known how the APIs send its values, so a column of it is refused.
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
ANY_TYPE = "anytype"
TEXTS = frozenset(
    {
        "combobox",
        "datacategorygroupreference",
        "email",
        "encryptedstring",
        "id",
        "multipicklist",
        "phone",
        "picklist",
        "reference",
        "string",
        "textarea",
        "time",
        "url",
        ANY_TYPE,
    }
)
NO_COLUMNS = frozenset({"address", "location", "base64", "complexvalue"})
"""Compound fields, whose components are columns; binary content and structured metadata, which bulk queries do not
support."""

MAX_PRECISION = 38

NEVER_SENT = frozenset({"SystemModstamp", "LastActivityDate", "LastViewedDate", "LastReferencedDate", "PhotoUrl"})
"""Columns that change events do not carry."""

MODSTAMPS = ("SystemModstamp", "LastModifiedDate", "CreatedDate", "LoginTime")
"""Candidates for the time of the last change, best first."""


@dataclass(frozen=True)
class ObjectSchema:
    """An object as the user sees it now.

    ``schema`` has every column that can be copied. ``compounds``: component -> its compound field. ``snapshot_only``:
    columns whose changes cause no event; their values are as of the last copy or fetch. ``modstamp``: the column with
    the time of the last change, empty if there is none. ``replicable``: Salesforce lists its deleted records.
    ``unordered``: columns that no query can filter and sort by.
    """

    schema: TableSchema
    compounds: Mapping[str, str] = field(default_factory=dict)
    snapshot_only: frozenset[str] = frozenset()
    modstamp: str = ""
    queryable: bool = True
    replicable: bool = True
    unordered: frozenset[str] = frozenset()

    @property
    def copyable(self) -> bool:
        return self.queryable and bool(self.schema.key)


def parse_description(description: Mapping[str, Any]) -> ObjectSchema:
    """``description`` is the JSON of ``sobjects/<name>/describe``."""
    fields: Sequence[Mapping[str, Any]] = description["fields"]
    compounds = {f["name"]: f["compoundFieldName"] for f in fields if _is_component(f)}
    compound_names = {f["name"] for f in fields if f["name"] in compounds.values()}
    columns = tuple(_column(f) for f in fields if f["type"] not in NO_COLUMNS)
    names = {column.name for column in columns}
    snapshot_only = {f["name"] for f in fields if f["name"] in NEVER_SENT or _is_formula(f, compound_names)}
    return ObjectSchema(
        TableSchema(description["name"], columns, (ID,) if ID in names else ()),
        {name: compound for name, compound in compounds.items() if name in names},
        frozenset(snapshot_only & names),
        next((name for name in MODSTAMPS if name in names), ""),
        bool(description.get("queryable", True)),
        bool(description.get("replicateable", True)),
        frozenset(f["name"] for f in fields if f["name"] in names and not _is_ordered(f)),
    )


def _is_formula(field: Mapping[str, Any], compound_names: Set[str]) -> bool:
    """A compound name may be described as calculated, too, but its changes cause events."""
    return bool(field.get("calculated")) and field["name"] not in compound_names


def _is_ordered(field: Mapping[str, Any]) -> bool:
    return bool(field.get("filterable", True)) and bool(field.get("sortable", True))


def _is_component(field: Mapping[str, Any]) -> bool:
    compound = field.get("compoundFieldName")
    return bool(compound) and compound != field["name"]


def _column(field: Mapping[str, Any]) -> Column:
    native = f"{field['type']}, calculated" if field.get("calculated") else field["type"]
    return Column(field["name"], logical_type(field), bool(field.get("nillable", True)), native)


def native_type(column: Column) -> str:
    """In lower case: Salesforce writes ``anyType``."""
    return column.native.split(",")[0].lower()


def unknown_types(schema: TableSchema) -> dict[str, str]:
    """Column -> its type in ``describe``, of each column that cannot be copied."""
    known = {"", *KINDS, *NUMBERS, *TEXTS}
    return {column.name: column.native for column in schema.columns if native_type(column) not in known}


def logical_type(field: Mapping[str, Any]) -> LogicalType:
    """TEXT also for an unknown type."""
    if field["type"] in NUMBERS:
        return _number(field)
    return LogicalType(KINDS.get(field["type"], Kind.TEXT))


def _number(field: Mapping[str, Any]) -> LogicalType:
    """The value of a formula may exceed its precision, but not its scale."""
    precision, scale = field.get("precision") or 0, field.get("scale") or 0
    if not 0 <= scale <= precision <= MAX_PRECISION or not precision:
        return LogicalType(Kind.FLOAT64)
    return LogicalType(Kind.DECIMAL, MAX_PRECISION if field.get("calculated") else precision, scale)
