"""The rows that the ``where`` of a table takes, told as changes. Pure.

An event need not tell what its row was before. So what lies inside is told as a row that came or changed, whatever was,
and what lies outside as a row that is gone: to delete what was never taken changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import DEPARTS, IMAGE_OPERATIONS, ChangeRecord, Operation
from airflow_cdc_provider.core.spec.definition import Condition
from airflow_cdc_provider.core.spec.filters import Value, literal, matches
from airflow_cdc_provider.core.table.schema import Kind


@dataclass(frozen=True)
class UndecidedRow:
    """Nobody can tell whether the row is taken: the event does not tell this column."""

    column: str


@dataclass(frozen=True)
class Filter:
    """``kinds``: column of a condition → what its values are."""

    where: Sequence[Condition]
    kinds: Mapping[str, Kind]

    def told(self, record: ChangeRecord) -> ChangeRecord | UndecidedRow:
        """The record as the copy needs it."""
        if record.op not in IMAGE_OPERATIONS:
            return record
        image = json.loads(record.after or "{}")
        for column in self.kinds:
            if column not in image:
                return UndecidedRow(column)
        if matches(self.where, {name: _value(kind, image[name]) for name, kind in self.kinds.items()}):
            whole = record.op == Operation.UPDATE and record.after_complete
            return replace(record, op=Operation.UPSERT) if whole else record
        return replace(
            record,
            op=Operation.DELETE,
            key_before=record.key,
            key=None,
            before=None,
            after=None,
            before_complete=False,
            after_complete=False,
            refetch=(),
            phase=DEPARTS,
            link_id=None,
        )


def filters_of(tasks: Sequence[TableTask]) -> dict[str, Filter]:
    """Table → its filter, of those that have one."""
    chosen = [task for task in tasks if task.rule.where]
    return {
        task.table: Filter(task.rule.where, {c.column: task.schema.column(c.column).type.kind for c in task.rule.where})
        for task in chosen
    }


def _value(kind: Kind, told: str | int | float | bool | None) -> Value | None:
    return None if told is None else literal(kind, told)
