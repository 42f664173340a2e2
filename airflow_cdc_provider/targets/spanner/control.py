"""The control row of a target table. It names the copy in force by its identity. Every commit replaces it in the
transaction that changes the rows, after it has compared it with the row that the commit is based on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from google.protobuf.struct_pb2 import ListValue, Value

from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import MergePlan
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.spanner import mutations
from airflow_cdc_provider.targets.spanner.changes import Verb
from airflow_cdc_provider.targets.spanner.names import CONTROL
from airflow_cdc_provider.targets.spanner.values import number_value, text_of, text_value
from airflow_cdc_provider.targets.target import TargetState

Read = Callable[[str, Sequence[str], Any], Iterator[list[Value]]]
"""``read`` of a session or of a transaction: table, columns, keys."""

COLUMNS = ("identity", "record", "begun", "loading")


@dataclass(frozen=True)
class Begun:
    """A merge that exceeds one transaction. Once this is in the control row, the merge is decided: the next process
    that reads it applies what is left of its saved parts.

    ``record``: of the commit that ends it. ``tasks``: those whose parts are applied. ``parts``: how many there are.
    ``sweeps``: rows without a change in the batch change first; ``before``: only those with a lower order key, all if
    it is empty."""

    record: ControlRecord
    plan: MergePlan
    tasks: tuple[str, ...]
    parts: int
    sweeps: bool = False
    before: str = ""


@dataclass(frozen=True)
class ControlRow:
    """``identity``: of the copy in force; empty before the first one. ``loading``: the nonce of the copy that is being
    loaded, whose commit every other commit prevents."""

    identity: str = ""
    record: ControlRecord | None = None
    begun: Begun | None = None
    loading: str = ""

    @property
    def state(self) -> TargetState:
        """Of a table that is this copy."""
        return TargetState(True, self.record, None, self.identity, self.record.token if self.record else None)


NO_ROW = ControlRow()
UNNAMED = ControlRecord("", "", "", "", "", 0, 0, "", State(TableState.PENDING, ""))
"""In the columns of a row whose first copy is being loaded."""


def read(read_rows: Read, target_table: str) -> ControlRow:
    key = mutations.keys([ListValue(values=[text_value(target_table)])])
    for identity, record, begun, loading in read_rows(CONTROL, COLUMNS, key):
        return ControlRow(
            str(text_of(identity)),
            _from_text(ControlRecord, record),
            _from_text(Begun, begun),
            str(text_of(loading) or ""),
        )
    return NO_ROW


def write(target_table: str, row: ControlRow) -> Any:
    """A mutation that inserts or replaces the row."""
    named = row.record or UNNAMED
    return mutations.write_row(
        Verb.UPSERT,
        CONTROL,
        {
            "target_table": text_value(target_table),
            "identity": text_value(row.identity),
            "replicator": text_value(named.replicator),
            "source_table": text_value(named.table),
            "fence": number_value(named.fence),
            "cursor_window": number_value(named.window),
            "nonce": text_value(named.nonce),
            "record": text_value(_as_text(row.record)),
            "begun": text_value(_as_text(row.begun)),
            "loading": text_value(row.loading),
        },
    )


def committed(row: ControlRow, record: ControlRecord) -> ControlRow:
    """The row after the commit of ``record``. Other copies that are being loaded cannot be committed after it."""
    return replace(row, record=record, begun=None, loading="")


def _as_text(value: object) -> str | None:
    return None if value is None else json.dumps(to_plain(value), ensure_ascii=False, separators=(",", ":"))


def _from_text(kind: Any, value: Value) -> Any:
    text = text_of(value)
    return None if text is None else from_plain(kind, json.loads(str(text)))
