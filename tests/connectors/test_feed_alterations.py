"""Changes of the schemas in a feed that imply changed rows without messages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.copied.reading import source_tasks
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import HoleFound
from airflow_cdc_provider.connectors.transports.messages.decoding import Format, message_reader
from airflow_cdc_provider.connectors.transports.messages.discovery import discover_tables
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_log import UNLOGGED
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.spec.selected_columns import selected_schema
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import State, TableState

RULE = TableRule("d.t")
FORM = Format("debezium", {"topic_prefix": "p"})
DATA, TIME = "io.debezium.data.", "io.debezium.time."
Field = dict[str, Any]


def field(column: str, kind: str = "int32", optional: bool = True, **more: Any) -> Field:
    return {"type": kind, "optional": optional, "field": column, **more}


ID, A, B = field("id", optional=False), field("a"), field("b")
ENUM = field("e", "string", name=f"{DATA}Enum", parameters={"allowed": "new,paid"})
AT = field("at", "int64", name=f"{TIME}MicroTimestamp")
BITS = field("bits", "bytes", name=f"{DATA}Bits", parameters={"length": "8"})
BEFORE = (ID, A, B, ENUM, AT, BITS)


def message(at: int, fields: Iterable[Field], snapshot: str = "false") -> Message:
    """An inserted row, or one of a full snapshot, with NULL in all columns but the key."""
    rows = [{"type": "struct", "optional": True, "field": one, "fields": list(fields)} for one in ("before", "after")]
    row = {one["field"]: one.get("default") for one in fields} | {"id": at}
    source = {"connector": "mysql", "db": "d", "table": "t", "file": "b.1", "pos": at, "row": 0, "snapshot": snapshot}
    payload = {"before": None, "after": row, "source": source, "op": "c" if snapshot == "false" else "r", "ts_ms": 0}
    key = {"schema": {"type": "struct", "fields": [ID]}, "payload": {"id": at}}
    value = {"schema": {"type": "struct", "fields": rows}, "payload": payload}
    return Message(json.dumps(value).encode(), json.dumps(key).encode(), topic="p.d.t", channel="p.d.t/0", offset=at)


def control(schema: TableSchema) -> ControlRecord:
    return ControlRecord("r", "d.t", "l", "o", "a", 1, 1, "", State(TableState.REPLICATING, ""), schema=schema)


def replicating(held: Iterable[Field], rule: TableRule = RULE) -> TableTask:
    discovered = discover_tables(FORM, [message(1, tuple(held))], {})
    schema = selected_schema(rule, discovered.schemas["d.t"])
    return TableTask("d.t", "t", schema, rule, "", TableState.REPLICATING, control(schema))


def holes(held: Iterable[Field], *behind: Iterable[Field], rule: TableRule = RULE) -> list[HoleFound]:
    """The holes of messages with these schemas after a copy that was made with the first one."""
    task = replicating(held, rule)
    messages = [message(at, tuple(fields)) for at, fields in enumerate(behind, 2)]
    return [item for item in message_reader(FORM, [task], 1).items(messages) if isinstance(item, HoleFound)]


def changed(old: Field, new: Field) -> tuple[Field, ...]:
    return tuple(new if one is old else one for one in BEFORE)


@pytest.mark.parametrize(
    "after",
    [
        BEFORE,
        (*BEFORE, field("c")),
        (ID, field("c"), A, B, ENUM, AT, BITS),
        tuple(one for one in BEFORE if one is not A),
        changed(A, field("a", default=5)),
        changed(A, field("a", optional=False)),
        changed(ENUM, ENUM | {"parameters": {"allowed": "new,sent,paid"}}),
        changed(AT, AT | {"name": f"{TIME}NanoTimestamp"}),
        changed(BITS, BITS | {"parameters": {"length": "9"}}),
    ],
    ids=["same", "added", "added between", "dropped", "default", "not null", "label", "finer", "longer"],
)
def test_a_change_that_keeps_every_row_is_no_hole(after: tuple[Field, ...]) -> None:
    assert holes(BEFORE, BEFORE, after, after) == []


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ((ID, B, A, ENUM, AT, BITS), "columns a, b changed positions or names"),
        ((*BEFORE, field("c", default=5)), "rows older than column c have a value"),
        ((*BEFORE, field("c", optional=False)), "rows older than column c have a value"),
        (changed(ENUM, ENUM | {"parameters": {"allowed": "new,sent"}}), "column e lost the labels paid"),
        (changed(AT, AT | {"name": f"{TIME}Timestamp"}), "column at changed from int64"),
        (changed(BITS, BITS | {"parameters": {"length": "7"}}), "column bits changed from bytes"),
    ],
    ids=["swap", "default", "not null", "label", "coarser", "shorter"],
)
def test_a_change_that_may_have_changed_rows_is_a_hole_at_its_first_message(
    after: tuple[Field, ...], words: str
) -> None:
    for behind in ([after], [BEFORE, after, after]):
        found = holes(BEFORE, *behind)
        assert [(one.table, one.kind) for one in found] == [("d.t", UNLOGGED)]
        assert words in found[0].detail
        assert found[0].order_key


def test_messages_are_compared_with_the_last_ones_in_the_log_although_no_copy_has_applied_them() -> None:
    """Each copy is paused: it has the columns of an earlier window."""
    more = changed(ENUM, ENUM | {"parameters": {"allowed": "new,paid,sent"}})
    (paused,) = source_tasks([replace(replicating(BEFORE), state=TableState.PAUSED)])
    (view,) = replicating(more).views
    behind_the_log = replace(paused, copies=(view,))
    for task, fields, words in ((behind_the_log, BEFORE, ["lost the labels sent"]), (behind_the_log, more, [])):
        items = message_reader(FORM, [task], 1).items([message(9, fields)])
        found = [item.detail for item in items if isinstance(item, HoleFound)]
        assert len(found) == len(words) and all(word in text for word, text in zip(words, found, strict=True))


def test_labels_may_contain_any_characters() -> None:
    odd = ENUM | {"parameters": {"allowed": "a\\,b,50% (x=y),ü"}}
    assert holes((ID, odd), (ID, odd), (ID, odd | {"parameters": {"allowed": "a\\,b,50% (x=y),ü,more"}})) == []
    assert "a\\,b" in holes((ID, odd), (ID, odd | {"parameters": {"allowed": "50% (x=y),ü"}}))[0].detail


def test_a_column_that_is_dropped_and_added_again_is_another_column() -> None:
    found = holes((ID, A, B), (ID, A, B), (ID, A), (ID, A, B))
    assert [one.detail for one in found] == ["column b was dropped, and another one was added under its name"]


@pytest.mark.parametrize("many", [1, 300])
def test_a_column_added_again_is_detected_in_messages_that_are_decoded_in_a_batch(many: int) -> None:
    def repeated(*fields: Field) -> list[tuple[Field, ...]]:
        return [fields] * many

    assert holes((ID, A, B), *repeated(ID, A, B), *repeated(ID, A), *repeated(ID, A, B))
    assert not holes((ID, A, B), *repeated(ID, A, B), *repeated(ID, A))


def test_a_full_snapshot_contains_all_rows_whatever_changed() -> None:
    after = (ID, B, A, field("c", default=5))
    task = replicating((ID, A, B))
    rows = [message(2, after, "true"), message(3, after, "last"), message(4, after)]
    assert not [item for item in message_reader(FORM, [task], 1).items(rows) if isinstance(item, HoleFound)]


def test_a_window_after_one_with_a_hole_has_none() -> None:
    """The swap has a schema of its own, although its names and types are those of the copy."""
    task, swapped = replicating((ID, A, B)), (ID, B, A)
    items = list(message_reader(FORM, [task], 1).items([message(2, swapped)]))
    shown = next(item for item in items if isinstance(item, TableSchema))
    assert shown.names == ("id", "b", "a")
    behind = replace(task, control=control(shown))
    assert not [i for i in message_reader(FORM, [behind], 1).items([message(3, swapped)]) if isinstance(i, HoleFound)]


def test_columns_that_are_not_copied_cause_no_hole() -> None:
    rule = TableRule("d.t", columns=Columns(include=("id", "a")))
    assert holes((ID, A, B), (ID, A, B), (ID, B, A), (ID, A, B, field("c", default=5)), rule=rule) == []


@pytest.mark.parametrize(("first", "later"), [(1, 2), (2, 1)])
def test_a_first_copy_has_the_columns_of_the_first_change_and_no_values_of_later_columns(
    first: int, later: int
) -> None:
    """Whatever partition is read first. The table has no copy yet when its first messages are read."""
    filled = field("c", default=5)
    messages = [message(at, (ID, A) if at == 1 else (ID, A, filled)) for at in (first, later)]
    discovered = discover_tables(FORM, messages, {})
    assert discovered.schemas["d.t"].names == ("id", "a")
    task = TableTask("d.t", "t", discovered.schemas["d.t"], TableRule("d.t"), "", TableState.PENDING)
    (hole,) = [i for i in message_reader(FORM, [task], 1).items(messages) if isinstance(i, HoleFound)]
    assert (hole.table, hole.detail.split(" have ")[0]) == ("d.t", "rows older than column c")


def test_a_first_copy_with_the_columns_of_all_messages_has_no_hole() -> None:
    only = message(1, (ID, A, field("c", default=5)))
    found = discover_tables(FORM, [only], {}).schemas["d.t"]
    declared = replace(found, columns=tuple(reversed(found.columns)))
    task = TableTask("d.t", "t", declared, TableRule("d.t"), "", TableState.PENDING)
    assert not [i for i in message_reader(FORM, [task], 1).items([only]) if isinstance(i, HoleFound)]
