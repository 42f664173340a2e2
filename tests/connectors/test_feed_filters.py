"""Rows selected by ``where``: the copy equals the selected rows of the source, whatever its events contain."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from airflow_cdc_provider.connectors.transports.messages.check import rule_problems
from airflow_cdc_provider.connectors.transports.messages.decoding import Format, message_reader
from airflow_cdc_provider.connectors.transports.messages.filtering import LEFT_OUT, MAYBE_LEFT_OUT, RowFilter
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.log.change_records import ChangeRecord, Operation
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition, TableRule
from airflow_cdc_provider.core.table.schema import Kind
from airflow_cdc_provider.core.table.states import TableState
from tests.connectors.formats.debezium_encoder import ConnectorSetup, DebeziumEncoder
from tests.connectors.formats.folded import in_order
from tests.connectors.formats.simulator import COLUMNS, Simulator
from tests.model import seeds

MYSQL = ConnectorSetup("mysql", schemas=True, transactions=True, headers=True)
FORM = Format("debezium", {"format": "debezium", "topic_prefix": "p"})
FEW = Condition("id", Comparison.LESS, 4)
NAMED = Condition("name", Comparison.EQUAL, "a")


def task(setup: ConnectorSetup, *where: Condition) -> TableTask:
    schema = setup.table
    return TableTask(schema.table, "t", schema, TableRule(schema.table, where=where), "", TableState.PENDING)


@pytest.mark.parametrize("where", [(FEW,), (NAMED,), (FEW, NAMED)], ids=str)
def test_the_copy_equals_the_selected_rows_of_the_source(where: tuple[Condition, ...]) -> None:
    seed = seeds.seed()
    for number in range(seeds.histories(25)):
        random = Random(f"{seed} {number}")
        history = Simulator(random, moves=True, late_check=False).history(8)
        messages = list(DebeziumEncoder(MYSQL, random).messages(history))
        made = message_reader(FORM, [task(MYSQL, *where)], 1)
        found = [item for item in made.items(messages) if isinstance(item, ChangeRecord)]
        chosen = {
            row[0]
            for row in history.end.values()
            if (FEW not in where or row[0] < 4) and (NAMED not in where or row[1] == "a")
        }
        held = {json.loads(key)[0] for key in in_order(found, COLUMNS)}
        assert held == chosen, f"CDC_SEED={seed}, history {number}"


def change(op: str, before: str | None, after: str | None, whole: bool = True, **more: Any) -> ChangeRecord:
    """Of row 7. ``whole``: whether all columns are known."""
    images = [json.dumps({"id": 7, "name": name}) if name else None for name in (before, after)]
    keys = ["[7]" if image else None for image in images]
    return ChangeRecord(
        *("p.t", op, "1", "s", keys[0], keys[1], images[0], images[1]),
        before_complete=whole and before is not None,
        after_complete=after is not None,
        **more,
    )


@pytest.mark.parametrize(
    ("record", "op", "warning"),
    [
        (change("insert", None, "b"), "delete", LEFT_OUT),
        (change("insert", None, "a"), "insert", None),
        (change("insert", None, "b", snapshot="initial"), "delete", MAYBE_LEFT_OUT),
        (change("read", None, "b"), "delete", MAYBE_LEFT_OUT),
        (change("update", "b", "c"), "delete", LEFT_OUT),
        (change("update", "a", "c"), "delete", None),
        (change("update", "b", "c", whole=False), "delete", MAYBE_LEFT_OUT),
        (change("update", "b", "a"), "upsert", None),
        (change("delete", "b", None), "delete", LEFT_OUT),
        (change("delete", "a", None), "delete", None),
        (change("delete", "b", None, whole=False), "delete", MAYBE_LEFT_OUT),
    ],
    ids=str,
)
def test_a_delete_says_whether_the_filter_left_its_row_out_before(
    record: ChangeRecord, op: str, warning: str | None
) -> None:
    change = RowFilter((NAMED,), {"name": Kind.TEXT}).apply(record)
    assert isinstance(change, ChangeRecord)
    assert (change.op, change.warnings) == (op, (warning,) if warning else ())


def test_a_record_without_the_filtered_column_is_unreadable() -> None:
    postgres = ConnectorSetup("postgresql", schemas=True, transactions=True, headers=True)
    wide = Condition("wide", Comparison.IS_NULL)
    undecided = []
    for number in range(20):
        random = Random(f"wide {number}")
        messages = list(
            DebeziumEncoder(postgres, random).messages(Simulator(random, moves=False, late_check=False).history(8))
        )
        made = message_reader(FORM, [task(postgres, wide)], 1)
        changes = [item for item in made.items(messages) if isinstance(item, ChangeRecord)]
        undecided += [one for one in changes if one.op == Operation.UNREADABLE]
    assert undecided
    assert all("the column wide" in (one.after or "") and one.key for one in undecided)
    one = undecided[0]
    assert FORM.reread(one, task(postgres, wide), postgres.table)[0].op == Operation.UNREADABLE
    (taken,) = FORM.reread(one, task(postgres), postgres.table)
    assert (taken.order_key, taken.key) == (one.order_key, one.key)


def test_a_condition_that_is_never_true_is_reported() -> None:
    wrong = task(MYSQL, Condition("at", Comparison.EQUAL, "noon"), replace(FEW, value="four"))
    assert [problem.code for problem in rule_problems(wrong)] == ["SRC072", "SRC072"]


def test_a_condition_on_a_column_of_another_type_is_refused() -> None:
    made = task(MYSQL, NAMED)
    cast = replace(made, rule=replace(made.rule, columns=Columns(cast={"name": "text"})))
    assert [problem.code for problem in rule_problems(cast)] == ["SRC106"]
