"""Row filters (``where``) on change records. Pure.

An event may lack the before image. So a row that matches becomes an upsert, and a row that does not match becomes a
delete: deleting a row that was never copied has no effect. A log of changes takes no delete of a row that the filter
left out before, and looks for the row where the event does not show that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import DEPARTS, IMAGE_OPERATIONS, ChangeRecord, Operation
from airflow_cdc_provider.core.spec.definition import Condition
from airflow_cdc_provider.core.spec.filters import Value, literal, matches
from airflow_cdc_provider.core.table.schema import Kind

LEFT_OUT, MAYBE_LEFT_OUT = "left_out", "maybe_left_out"
"""The warnings of a delete whose row the filter left out before, and of one whose event does not show it."""


@dataclass(frozen=True)
class MissingOperand:
    """The filter cannot be evaluated: the event lacks this column."""

    column: str


@dataclass(frozen=True)
class RowFilter:
    """``kinds``: column of a condition → kind of its values."""

    where: Sequence[Condition]
    kinds: Mapping[str, Kind]

    def apply(self, record: ChangeRecord) -> ChangeRecord | MissingOperand:
        """The change of the copy that follows from the record."""
        if record.op == Operation.DELETE:
            return self._marked(record, record)
        if record.op not in IMAGE_OPERATIONS:
            return record
        image = json.loads(record.after or "{}")
        for column in self.kinds:
            if column not in image:
                return MissingOperand(column)
        if self._selects(image):
            full_update = record.op == Operation.UPDATE and record.after_complete
            return replace(record, op=Operation.UPSERT) if full_update else record
        delete = replace(
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
        return self._marked(delete, record)

    def _marked(self, delete: ChangeRecord, record: ChangeRecord) -> ChangeRecord:
        """``delete``: what follows from the record."""
        selected = self._selected_before(record)
        if selected:
            return delete
        warning = MAYBE_LEFT_OUT if selected is None else LEFT_OUT
        return replace(delete, warnings=(*delete.warnings, warning))

    def _selected_before(self, record: ChangeRecord) -> bool | None:
        """Whether the copy has the row, by what the event shows of it before the change; None if that is not known."""
        if record.op == Operation.INSERT and record.snapshot == "none":
            return False
        image = json.loads(record.before or "{}") if record.before_complete else {}
        return self._selects(image) if self.kinds.keys() <= image.keys() else None

    def _selects(self, image: Mapping[str, Any]) -> bool:
        return matches(self.where, {name: _value(kind, image[name]) for name, kind in self.kinds.items()})


def row_filters(tasks: Sequence[TableTask]) -> dict[str, RowFilter]:
    """Table → its filter, without tables that have none."""
    return {
        task.table: RowFilter(
            task.rule.where, {c.column: task.schema.column(c.column).type.kind for c in task.rule.where}
        )
        for task in tasks
        if task.rule.where
    }


def _value(kind: Kind, value: str | int | float | bool | None) -> Value | None:
    if value is None or kind is Kind.BYTES:  # bytes are only compared with NULL
        return value
    return literal(kind, value)
