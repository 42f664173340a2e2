"""The row filter (``where``) of a table, for records whose values an operator has given. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.connectors.transports.messages.filtering import MissingOperand, RowFilter
from airflow_cdc_provider.core.columns.copied import copied_name
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.log.quarantine import undecoded
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.table.schema import TableSchema


class UnknownOperand(Exception):
    """The filter cannot be tried. The text names the column."""


def selected(
    bad: ChangeRecord,
    values: Mapping[str, Any],
    corrected: Sequence[ChangeRecord],
    rule: TableRule,
    schema: TableSchema,
) -> list[ChangeRecord]:
    """The changes of the copy that follow from the corrected records of a bad one. The source's decoder has tried a
    record that it could decode, unless ``values`` change what the filter reads. Raises UnknownOperand."""
    names = {condition.column: copied_name(rule, condition.column) for condition in rule.where}
    if not values or not (undecoded(bad) or values.keys() & set(names.values())):
        return list(corrected)
    columns = {column.name: column for column in schema.columns if not column.is_converted}
    for source, name in names.items():
        if name not in columns:
            raise UnknownOperand(f"the row filter reads column {source}, whose value the copy does not have")
    where = tuple(replace(condition, column=names[condition.column]) for condition in rule.where)
    row_filter = RowFilter(where, {name: columns[name].type.kind for name in names.values()})
    return [change for record in corrected for change in _changes(row_filter, record, schema)]


def _changes(row_filter: RowFilter, record: ChangeRecord, schema: TableSchema) -> list[ChangeRecord]:
    change = row_filter.apply(record)
    if isinstance(change, MissingOperand):
        raise UnknownOperand(f"the row filter reads column {change.column}, which has no value: give it, too")
    if schema.key or change.op != Operation.DELETE or record.op == Operation.DELETE:
        return [change]
    if record.op in (Operation.INSERT, Operation.READ):
        return []
    raise UnknownOperand("the row filter does not take the row, and without a key its former row is unknown")
