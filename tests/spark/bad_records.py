"""Records that cannot be applied, and the decisions of an operator about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, decision_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord, canonical
from airflow_cdc_provider.core.log.quarantine import UndecodedRecord, record_id, undecoded
from airflow_cdc_provider.core.serde import to_plain
from tests.spark.scripted_table import ScriptedTable

RAW = "bm9ib2R5IHJlYWRzIHRoaXM="


def unreadable(record: ChangeRecord, *columns: str, key: bool = True) -> ChangeRecord:
    """The record after a decoder that decoded all but ``columns``; nothing of it if none are named."""
    known = {name: value for name, value in _image(record).items() if name not in columns} if columns else {}
    what = UndecodedRecord("tests", RAW, "no telling", op=record.op, known=known, columns=columns)
    own = record.key_before if record.op == "delete" else record.key
    return replace(
        record,
        op="unreadable",
        key=own if key else None,
        key_before=None,
        before=None,
        before_complete=False,
        after=canonical(to_plain(what)),
        after_complete=False,
    )


def lost_values(record: ChangeRecord, bad: ChangeRecord) -> dict[str, Any]:
    """The values with which an operator turns the bad record into ``record``: all of its values if the whole message
    was lost."""
    what, image = undecoded(bad), _image(record)
    columns: Sequence[str] = what.columns if what and what.columns else list(image)
    return {name: image[name] for name in columns}


def decide(table: ScriptedTable, record: ChangeRecord, kind: DecisionKind, **values: Any) -> None:
    number = len(table.log.decisions())
    decision = OperatorDecision(
        f"{number:06d}", kind, "hand", table.schema.table, "ann", "2026-01-01", record=record_id(record), values=values
    )
    assert table.log.store.create(decision_path(decision.id), json.dumps(to_plain(decision)).encode())


def _image(record: ChangeRecord) -> dict[str, Any]:
    image: dict[str, Any] = json.loads((record.before if record.op == "delete" else record.after) or "{}")
    return image
