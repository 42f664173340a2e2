"""Columns that a connector's schema-change topic shows to be renamed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.blocks import Block
from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import HoleFound, StreamItem
from airflow_cdc_provider.connectors.transports.messages.decoding import message_reader
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import compare
from tests.connectors.formats.test_table_history import CREATED, statement
from tests.connectors.test_feed_alterations import FORM, ID, RULE, Field, control, field, message, replicating

V, W = field("v", optional=False), field("w", optional=False)
RENAME = statement(2, "ALTER TABLE t RENAME COLUMN v TO w", "t", "id", "w")
BACK = statement(4, "ALTER TABLE t RENAME COLUMN w TO v", "t", "id", "v")


def read(task: TableTask, messages: Iterable[Message], statements: Sequence[dict[str, Any]]) -> list[StreamItem]:
    changes = [
        Message(json.dumps(one).encode(), topic="p", channel="p/0", offset=offset)
        for offset, one in enumerate(statements)
    ]
    return list(message_reader(FORM, [task], 1, lambda: changes).items(list(messages)))


def rows(*schemas: Iterable[Field], first: int = 3, each: int = 1) -> list[Message]:
    fields = [tuple(one) for one in schemas for _ in range(each)]
    return [message(at, one) for at, one in enumerate(fields, first)]


def schemas(items: Iterable[StreamItem]) -> list[TableSchema]:
    return [item for item in items if isinstance(item, TableSchema)]


def holes(items: Iterable[StreamItem]) -> list[str]:
    return [item.detail for item in items if isinstance(item, HoleFound)]


def changes(task: TableTask, items: Iterable[StreamItem]) -> list[str]:
    """From the copy to the last schema of the items."""
    assert task.control is not None and task.control.schema is not None
    return [str(one) for one in compare(task.control.schema, schemas(items)[-1])]


@pytest.mark.parametrize("each", [1, 300])
def test_a_renamed_column_is_the_same_column(each: int) -> None:
    """Whether its messages are decoded one by one or in a batch. It has a value in every row, old and new."""
    task = replicating((ID, V))
    items = read(task, rows((ID, V), (ID, W), each=each), [CREATED, RENAME])
    assert (holes(items), changes(task, items)) == ([], ["column v was renamed to w"])
    assert sum(item.columns.num_rows if isinstance(item, Block) else 1 for item in items) >= 2 * each
    assert not [item for item in items if isinstance(item, ChangeRecord) and item.op == Operation.UNREADABLE]


def test_without_the_statement_it_is_another_column() -> None:
    task = replicating((ID, V))
    items = read(task, rows((ID, W)), [CREATED])
    assert holes(items) == ["rows older than column w have a value in it that the feed does not contain"]
    assert "perhaps a rename" in changes(task, items)[-1]


def test_the_statement_may_be_the_only_one_that_the_topic_still_has() -> None:
    task = replicating((ID, V))
    assert changes(task, read(task, rows((ID, W)), [RENAME])) == ["column v was renamed to w"]


def test_a_column_that_gets_its_name_back_was_never_gone() -> None:
    task = replicating((ID, V))
    items = read(task, rows((ID, V), (ID, W), (ID, V)), [CREATED, RENAME, BACK])
    assert (holes(items), changes(task, items[:-2])) == ([], ["column v was renamed to w"])


def test_a_later_window_has_the_column_under_its_first_name() -> None:
    """The copy has the new name by then, or has not yet applied the window before."""
    task = replicating((ID, V))
    renamed = schemas(read(task, rows((ID, W)), [CREATED, RENAME]))[-1]
    followed = replace(task, control=control(renamed))
    for behind, statements in ((followed, []), (task, [CREATED, RENAME])):
        (again,) = schemas(read(behind, rows((ID, W), first=9), statements))
        assert again == renamed
    last = read(followed, rows((ID, field("x")), first=9), [CREATED, RENAME, RENAMED_AGAIN])
    assert changes(followed, last) == ["column w was renamed to x"]
    assert changes(task, last) == ["column v was renamed to x"]


def test_a_table_that_is_known_by_its_new_columns_has_their_identity() -> None:
    """The first messages that the topic still has are those after the statement."""
    task = replace(replicating((ID, V)), schema=replicating((ID, W)).schema)
    items = read(task, rows((ID, V), (ID, W)), [CREATED, RENAME])
    assert (holes(items), changes(task, items)) == ([], ["column v was renamed to w"])


RENAMED_AGAIN = statement(8, "ALTER TABLE t CHANGE w x int", "t", "id", "x")


def test_a_wider_type_of_a_renamed_column_is_a_change_of_its_type() -> None:
    task = replicating((ID, V))
    wider = statement(2, "ALTER TABLE t CHANGE v w bigint NOT NULL", "t", "id", "w")
    items = read(task, rows((ID, field("w", "int64", optional=False))), [CREATED, wider])
    assert changes(task, items) == ["column v was renamed to w", "column w changed from int32 to int64"]
    assert holes(items) == []


def test_a_renamed_column_of_the_key_stays_in_the_key() -> None:
    task = replicating((ID, V))
    renamed = statement(2, "ALTER TABLE t RENAME COLUMN id TO number", "t", "number", "v")
    number = field("number", optional=False)
    items = read(task, [with_key(one, "number") for one in rows((number, V))], [CREATED, renamed])
    assert changes(task, items) == ["column id was renamed to number"]
    (record,) = [item for item in items if isinstance(item, ChangeRecord)]
    assert (record.op, record.key) == (Operation.INSERT, "[3]")


def with_key(one: Message, name: str) -> Message:
    """The message of a table whose key column has another name."""
    value = json.loads(one.value or b"")
    number = value["payload"]["after"].pop("id")
    value["payload"]["after"][name] = number
    key = {"schema": {"type": "struct", "fields": [field(name, optional=False)]}, "payload": {name: number}}
    return one._replace(value=json.dumps(value).encode(), key=json.dumps(key).encode())


def test_a_column_that_was_not_copied_under_its_former_name_is_a_hole() -> None:
    rule = TableRule("d.t", columns=Columns(exclude=("v",)))
    task = replicating((ID, V), rule)
    items = read(task, rows((ID, field("w"))), [CREATED, RENAME])
    assert holes(items) == ["column v, which is not copied, was renamed to w"]
    named = replace(rule, columns=Columns(exclude=("v", "w")))
    assert holes(read(replicating((ID, V), named), rows((ID, field("w"))), [CREATED, RENAME])) == []


def test_columns_that_an_operator_ignores_do_not_matter() -> None:
    z = field("z")
    task = replicating((ID, V))
    assert task.control is not None
    task = replace(task, control=replace(task.control, ignored={"z": ""}))
    statements = [
        CREATED,
        statement(2, "ALTER TABLE t ADD z int", "t", "id", "v", "z"),
        statement(3, "ALTER TABLE t RENAME COLUMN v TO w", "t", "id", "w", "z"),
    ]
    items = read(task, rows((ID, W, z)), statements)
    assert changes(task, items) == ["column v was renamed to w", "column z int32 was added"]


def test_a_topic_that_cannot_be_read_renames_nothing() -> None:
    task = replicating((ID, V))
    broken = [Message(b"{", topic="p"), Message(None, topic="p"), Message(b"5", topic="p"), Message(b"", reason="?")]
    items = list(message_reader(FORM, [task], 1, lambda: broken).items(rows((ID, W))))
    assert "perhaps a rename" in changes(task, items)[-1]


def test_the_topic_is_read_only_if_a_column_is_new() -> None:
    def refuse() -> list[Message]:
        raise AssertionError("read")

    task = replicating((ID, V))
    assert list(message_reader(FORM, [task], 1, refuse).items(rows((ID, V), (ID,), (ID, V))))
    with pytest.raises(AssertionError, match="read"):
        list(message_reader(FORM, [task], 1, refuse).items(rows((ID, W))))
    assert RULE.source == "d.t"


def test_a_statement_among_the_messages_changes_no_columns() -> None:
    """Its columns include those that are not copied, and its place among the rows is unknown."""
    task = replicating((ID, V), TableRule("d.t", columns=Columns(exclude=("v",))))
    statements = [
        Message(json.dumps(one).encode(), topic="p", channel="p/0", offset=offset)
        for offset, one in enumerate([CREATED, RENAME])
    ]
    items = list(message_reader(FORM, [task], 1).items(statements))
    records = [item for item in items if isinstance(item, ChangeRecord)]
    assert [(one.table, one.op, one.schema_id) for one in records] == [("d.t", Operation.MESSAGE, "")] * 2
