"""Alterations of columns of a Delta table: a commit that changes its metadata, and its protocol where that is needed.

Files keep the names and types that columns had when they were written. With column mapping the metadata has the name
in the files beside the column's own; with type widening it has the column's earlier types.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.core.table.alterations import Alter, Alteration
from airflow_cdc_provider.core.table.schema import Kind
from airflow_cdc_provider.targets.delta.ddl import COLUMN_MAPPING, PHYSICAL_NAME, STATISTICS, is_listed
from airflow_cdc_provider.targets.delta.metadata import TableMetadata
from airflow_cdc_provider.targets.delta.names import path_table
from airflow_cdc_provider.targets.delta.options import TableFeature
from airflow_cdc_provider.targets.sparksql.names import quoted, text_literal
from airflow_cdc_provider.targets.sparksql.table_columns import type_name
from airflow_cdc_provider.targets.sparksql.types import column_type

MAX_ID, ID = "delta.columnMapping.maxColumnId", "delta.columnMapping.id"
COMMENT = "comment"
TYPE_WIDENING, TYPE_CHANGES = "delta.enableTypeWidening", "delta.typeChanges"
NEEDED: dict[Alter, TableFeature] = {
    Alter.RENAME: TableFeature.COLUMN_MAPPING,
    Alter.DROP: TableFeature.COLUMN_MAPPING,
    Alter.SET_NULL: TableFeature.COLUMN_MAPPING,
    Alter.WIDEN: TableFeature.TYPE_WIDENING,
}
READER_VERSION, WRITER_VERSION = 3, 7
"""The first versions of the protocol with a list of features."""


def statements(path: str, alterations: Sequence[Alteration], allowed: Sequence[TableFeature]) -> tuple[str, ...] | None:
    """As Spark SQL; None if one of them needs a feature that is not ``allowed``."""
    table, texts = path_table(path), []
    for one in alterations:
        if one.kind in NEEDED and NEEDED[one.kind] not in allowed:
            return None
        name = quoted(one.column.name)
        match one.kind:
            case Alter.RENAME if one.to:
                texts.append(f"ALTER TABLE {table} RENAME COLUMN {name} TO {quoted(one.to.name)};")
            case Alter.WIDEN if one.to:
                texts.append(f"ALTER TABLE {table} ALTER COLUMN {name} TYPE {column_type(one.to.type)};")
            case Alter.COMMENT:
                texts.append(f"ALTER TABLE {table} ALTER COLUMN {name} COMMENT {text_literal(one.comment)};")
            case _:
                texts.append(f"ALTER TABLE {table} DROP COLUMN {name};")
        if one.kind is Alter.SET_NULL:
            texts.append(f"ALTER TABLE {table} ADD COLUMN {name} {column_type(one.column.type)};")
    return tuple(texts)


def altered(table: TableMetadata, alterations: Sequence[Alteration]) -> TableMetadata:
    """Names of columns differ in more than case: a column may live in a former one of another case."""
    for one in alterations:
        table = _with_needed_feature(table, one.kind)
        fields, configuration = _fields(table), dict(table.metadata["configuration"])
        at = next(number for number, field in enumerate(fields) if field["name"].lower() == one.column.name.lower())
        name = fields[at]["name"]
        match one.kind:
            case Alter.RENAME if one.to:
                fields[at] = {**fields[at], "name": one.to.name}
                _rename_statistics(configuration, name, one.to.name)
            case Alter.WIDEN if one.to:
                fields[at] = _widened(fields[at], type_name(one.to.type))
                table = _with_timestamps(table) if one.to.type.kind is Kind.TIMESTAMP else table
            case Alter.COMMENT:
                fields[at] = _commented(fields[at], one.comment)
            case Alter.SET_NULL:
                fields[at] = _new_field(fields[at], configuration)
            case _:
                del fields[at]
                _rename_statistics(configuration, name, "")
        schema = json.dumps({"type": "struct", "fields": fields})
        metadata = {**table.metadata, "schemaString": schema, "configuration": configuration}
        table = replace(table, metadata=metadata)
    return table


def names(table: TableMetadata) -> list[str]:
    return [field["name"] for field in _fields(table)]


def _fields(table: TableMetadata) -> list[dict[str, Any]]:
    return list(json.loads(table.metadata["schemaString"])["fields"])


def _with_needed_feature(table: TableMetadata, kind: Alter) -> TableMetadata:
    if kind is Alter.COMMENT:
        return table
    return _with_widening(table) if kind is Alter.WIDEN else _with_mapping(table)


def _with_feature(table: TableMetadata, feature: str, **settings: str) -> TableMetadata:
    protocol = dict(table.protocol)
    assert (protocol["minReaderVersion"], protocol["minWriterVersion"]) == (READER_VERSION, WRITER_VERSION)
    for name in ("readerFeatures", "writerFeatures"):
        protocol[name] = sorted({*protocol.get(name, ()), feature})
    configuration = {**table.metadata["configuration"], **settings}
    return TableMetadata(protocol, {**table.metadata, "configuration": configuration})


def _with_mapping(table: TableMetadata) -> TableMetadata:
    """Columns that exist keep their names in the files."""
    if COLUMN_MAPPING in table.metadata["configuration"]:
        return table
    fields = [
        {**field, "metadata": {**field["metadata"], ID: number, PHYSICAL_NAME: field["name"]}}
        for number, field in enumerate(_fields(table), 1)
    ]
    table = _with_feature(table, TableFeature.COLUMN_MAPPING, **{COLUMN_MAPPING: "name", MAX_ID: str(len(fields))})
    schema = json.dumps({"type": "struct", "fields": fields})
    return replace(table, metadata={**table.metadata, "schemaString": schema})


def _with_widening(table: TableMetadata) -> TableMetadata:
    return _with_feature(table, TableFeature.TYPE_WIDENING, **{TYPE_WIDENING: "true"})


def _with_timestamps(table: TableMetadata) -> TableMetadata:
    return _with_feature(table, "timestampNtz")


def _widened(field: dict[str, Any], kind: str) -> dict[str, Any]:
    changes = [*field["metadata"].get(TYPE_CHANGES, ()), {"fromType": field["type"], "toType": kind}]
    return {**field, "type": kind, "metadata": {**field["metadata"], TYPE_CHANGES: changes}}


def _commented(field: dict[str, Any], text: str) -> dict[str, Any]:
    others = {name: value for name, value in field["metadata"].items() if name != COMMENT}
    return {**field, "metadata": {**others, COMMENT: text} if text else others}


def _new_field(field: dict[str, Any], configuration: dict[str, str]) -> dict[str, Any]:
    """Another column with the same name, which no file has."""
    number = int(configuration[MAX_ID]) + 1
    configuration[MAX_ID] = str(number)
    names = {ID: number, PHYSICAL_NAME: f"col-{uuid.uuid4()}"}
    return {"name": field["name"], "type": field["type"], "nullable": True, "metadata": names}


def _rename_statistics(configuration: dict[str, str], old: str, new: str) -> None:
    """In the list of columns with statistics. A list without a column would mean another default."""
    listed = configuration.get(STATISTICS, "")
    if not is_listed(old, listed):
        return
    names = [name for name in (quoted(new) if name == quoted(old) else name for name in _split(listed)) if name != "``"]
    del configuration[STATISTICS]
    if names:
        configuration[STATISTICS] = ",".join(names)


def _split(listed: str) -> list[str]:
    """Names in backticks, which may contain commas."""
    return [f"`{name}`" for name in listed.strip("`").split("`,`")]
