"""Tables that are renamed while their topics are read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.decoders.common.message import Message
from airflow_cdc_provider.connectors.source import HoleFound, StreamItem
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.positions import Position
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.schema_changes import compare
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.kafka import EmbeddedKafka
from tests.blocks import unpacked
from tests.connectors.formats.test_table_history import CREATED, moved, statement
from tests.connectors.kafka_topics import Topics
from tests.connectors.test_feed_alterations import ID, Field, control, field, message

pytestmark = [pytest.mark.jvm, pytest.mark.server]

V, W = field("v", optional=False), field("w", optional=False)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as running:
        yield running


class RenamedTopics(Topics):
    def __init__(self, broker: EmbeddedKafka) -> None:
        super().__init__(broker, f"p{os.urandom(4).hex()}")
        self.statements, self.t, self.u = self.make("statements"), self.make("d.t", 2), self.make("d.u")

    def state(self, *statements: dict[str, Any]) -> None:
        self.send(self.statements, [Message(json.dumps(one).encode()) for one in statements])

    def rows(self, topic: str, *rows: tuple[int, Iterable[Field]]) -> None:
        table = f'"table": "{topic[-1]}"'.encode()
        made = [message(at, tuple(fields)) for at, fields in rows]
        self.send(topic, [one._replace(value=(one.value or b"").replace(b'"table": "t"', table)) for one in made])

    def copied(self) -> tuple[TableTask, Position]:
        """The task of a copy that has the first rows, and the position behind them."""
        (task,) = self.tasks()
        _, lo = self.window({}, [task])
        return replace(task, state=TableState.REPLICATING, control=control(task.schema)), lo

    def renamed(self, task: TableTask) -> TableTask:
        """As the next run plans it."""
        source = self.source()
        (schema,) = [one for one in source.tables() if one.table == "d.u"]
        name = source.present_names({task.table: None})[task.table]
        names = source.former_names(name)
        return replace(task, schema=replace(schema, table=task.table), renamed_to=name, former_names=names)

    def following(self, task: TableTask, lo: Position) -> list[StreamItem]:
        source = self.source()
        limit = source.status(lo, [task.name_in_source]).limit
        return [item for part in source.splits(lo, limit) for item in unpacked(source.read(part, [task], 1))]


@pytest.fixture
def topics(broker: EmbeddedKafka) -> RenamedTopics:
    made = RenamedTopics(broker)
    made.state(CREATED)
    made.rows(made.t, (2, (ID, V)), (3, (ID, V)))
    return made


def test_changes_of_a_renamed_table_and_column_go_on_under_the_name_of_the_copy(topics: RenamedTopics) -> None:
    """Also those that its former topic still has."""
    task, lo = topics.copied()
    topics.rows(topics.t, (4, (ID, V)), (6, (ID, W)))
    topics.state(statement(5, "ALTER TABLE t RENAME COLUMN v TO w", "t", "id", "w"), moved(7, "t", "u"))
    topics.rows(topics.u, (8, (ID, W)), (9, (ID, W)))
    followed = topics.renamed(task)
    items = topics.following(followed, lo)
    assert not [item for item in items if isinstance(item, HoleFound)]
    records = [item for item in items if isinstance(item, ChangeRecord)]
    assert {(item.table, item.key) for item in records} == {("d.t", f"[{key}]") for key in (4, 6, 8, 9)}
    assert [item.key for item in sorted(records, key=lambda one: one.order_key)] == ["[4]", "[6]", "[8]", "[9]"]
    renamed = [item for item in items if isinstance(item, TableSchema) and "w" in item.names]
    assert {tuple(map(str, compare(task.schema, one))) for one in renamed} == {("column v was renamed to w",)}
    source = topics.source()
    assert [source.contains_all_after(lo, lo, name) for name in ("d.t", "d.u")] == [False, False]


def test_a_topic_with_rows_from_before_the_statement_is_that_of_another_table(topics: RenamedTopics) -> None:
    topics.rows(topics.u, (4, (ID, V)))
    topics.state(moved(5, "t", "u"))
    topics.rows(topics.u, (6, (ID, V)))
    assert [one.table for one in topics.source().tables()] == ["d.t", "d.u"]
    assert topics.source().present_names({"d.t": None}) == {}


def test_a_renamed_table_has_its_name_before_it_has_rows(topics: RenamedTopics) -> None:
    """By the columns in the statement."""
    topics.state(moved(5, "t", "u"))
    assert [one.table for one in topics.source().tables()] == ["d.u"]
    assert topics.source().present_names({"d.t": None, "d.v": None}) == {"d.t": "d.u"}


def test_a_record_of_a_renamed_table_is_decoded_again_under_the_name_of_the_copy(topics: RenamedTopics) -> None:
    task, lo = topics.copied()
    topics.state(moved(5, "t", "u"))
    topics.rows(topics.u, (6, (ID, V)), (7, (ID, V)))
    topics.send(topics.u, [message(8, (ID, V))._replace(value=b"{")])
    followed = topics.renamed(task)
    *_, bad = [item for item in topics.following(followed, lo) if isinstance(item, ChangeRecord)]
    assert (bad.table, bad.op) == ("d.t", "unreadable")
    (again,) = topics.source().reread(bad, followed, followed.schema)
    assert again.op == "unreadable"


def test_what_is_lost_of_a_topic_is_a_hole_of_the_copy(topics: RenamedTopics) -> None:
    task, lo = topics.copied()
    topics.state(moved(5, "t", "u"))
    topics.rows(topics.u, (6, (ID, V)))
    followed = topics.renamed(task)
    _, hi = topics.window(lo, [replace(followed, table="d.u")])
    topics.remove(topics.u)
    topics.make("d.u")
    topics.rows(topics.u, (7, (ID, V)))
    (hole,) = {item.table for item in topics.following(followed, hi) if isinstance(item, HoleFound)} & {"d.t"}
    assert hole == "d.t"


def test_the_check_names_the_topic_that_is_not_read(topics: RenamedTopics) -> None:
    assert topics.source().renames_hidden() is None
    without = topics.source(topics=[topics.t, topics.u]).renames_hidden()
    assert without is not None and without.code == "SRC140"
