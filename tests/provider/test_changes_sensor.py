"""The sensor that waits for changes, on a worker and in the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.triggers.base import TriggerEvent

from airflow_cdc_provider.control.answers import answer_question
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.log.change_log import manifest_path
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.factory import definition_of
from airflow_cdc_provider.operators import replicator_task
from airflow_cdc_provider.operators.failures import TaskFailed
from airflow_cdc_provider.sensors.changes import ChangesAvailableSensor
from airflow_cdc_provider.state.store import StateStore
from airflow_cdc_provider.triggers.changes import ChangesTrigger
from tests.provider.run_harness import RunHarness
from tests.provider.waiting_table import QUESTION, ask

SHOP = Path(__file__).parents[2] / "dags" / "replicators" / "shop.yaml"


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunHarness:
    """A replicator that is copied and idle; the product opens this one."""
    made = RunHarness(tmp_path)
    made.run("r1")

    def opened(definition: Definition, *_: object) -> Any:
        assert definition == made.definition
        return made.replicator

    monkeypatch.setattr(replicator_task, "open_replicator", opened)
    monkeypatch.setattr(replicator_task, "secrets_of", lambda definition: None)
    monkeypatch.setattr(replicator_task, "open_state", lambda: made.state)
    return made


def sensor(harness: RunHarness, **more: Any) -> ChangesAvailableSensor:
    return ChangesAvailableSensor(task_id="changes", definition=to_plain(harness.definition), **more)


def test_a_process_with_another_state_store_does_not_wait_for_ever(harness: RunHarness) -> None:
    """As the triggerer in a container of its own, without a shared file."""
    harness.source.change("public.a")
    harness.state = StateStore(f"sqlite:///{harness.folder}/triggerer.db")
    event = fired(harness, lambda: None).payload
    assert not event["retryable"]
    assert "STA007" in event["problem"] and "connection cdc_state" in event["problem"]
    with pytest.raises(AirflowFailException, match="STA007"):
        sensor(harness).poke({})


def test_the_sensor_waits_until_an_idle_source_has_changes(harness: RunHarness) -> None:
    waiting = sensor(harness)
    assert not waiting.poke({})
    harness.source.change("public.a")
    assert waiting.poke({})
    harness.run("r2")
    assert not waiting.poke({})


def request_resync(harness: RunHarness) -> None:
    harness.state.request("shop", CommandKind.RESYNC, ["public.a"], {}, "key", "operator")


def read_again(harness: RunHarness) -> None:
    """The tables of the target; for some time a run relies on what it has read."""
    rows = harness.state.tables("shop").values()
    harness.state.change_tables("shop", lambda _: [replace(row, seen_at="2026-01-01") for row in rows])


def answer(harness: RunHarness, *, given: bool) -> None:
    ask(harness)
    read_again(harness)
    if given:
        answer_question(harness.replicator, QUESTION, Answer.RESYNC, "ada", "")


def begin_rewind(harness: RunHarness) -> None:
    control = harness.control("public.a")
    state = State(TableState.REWINDING, utc_now(), "back to window 1", version=0)
    harness.commit("public_a", control.fenced(state))
    read_again(harness)


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        pytest.param(request_resync, True, id="a request"),
        pytest.param(partial(answer, given=True), True, id="an answer about a table without changes"),
        pytest.param(partial(answer, given=False), False, id="a question"),
        pytest.param(begin_rewind, True, id="a rewind whose process died"),
        pytest.param(lambda harness: harness.source.write(end=500), True, id="nothing but changes of others"),
        pytest.param(lambda harness: harness.source.write(slot=None), False, id="a stream that is lost"),
    ],
)
def test_the_sensor_succeeds_where_a_run_has_work(
    harness: RunHarness, happens: Callable[[RunHarness], None], expected: bool
) -> None:
    happens(harness)
    assert sensor(harness).poke({}) == expected


def test_the_sensor_succeeds_before_the_first_copy(tmp_path: Path, harness: RunHarness) -> None:
    assert not sensor(harness).poke({})
    (tmp_path / "fresh").mkdir()
    fresh = RunHarness(tmp_path / "fresh")
    harness.folder, harness.definition, harness.source = fresh.folder, fresh.definition, fresh.source
    assert sensor(harness).poke({})


def test_the_timeout_in_the_triggerer_is_that_on_a_worker(harness: RunHarness) -> None:
    waiting = sensor(harness, deferrable=True, poke_interval=7, timeout=90)
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, ChangesTrigger)
    assert (deferred.value.method_name, deferred.value.timeout) == ("execute_complete", timedelta(seconds=90))
    path, fields = trigger.serialize()
    assert path == "airflow_cdc_provider.triggers.changes.ChangesTrigger"
    assert fields == {"definition": to_plain(harness.definition), "poke_interval": 7}
    harness.source.change("public.a")
    waiting.execute({})


def fired(harness: RunHarness, then: Callable[[], None]) -> TriggerEvent:
    async def first() -> TriggerEvent:
        asyncio.get_running_loop().call_later(0.2, then)
        return await anext(ChangesTrigger(to_plain(harness.definition), 0.05).run())

    return asyncio.run(asyncio.wait_for(first(), 20))


def test_the_trigger_fires_after_a_change(harness: RunHarness) -> None:
    event = fired(harness, lambda: harness.source.change("public.b"))
    assert event.payload == {}
    sensor(harness).execute_complete({}, event.payload)


@pytest.mark.parametrize(("retryable", "kind"), [(True, TaskFailed), (False, AirflowFailException)])
def test_an_error_in_the_triggerer_fails_the_task_with_its_message(
    harness: RunHarness, retryable: bool, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="SRC001 no route"):
        sensor(harness).execute_complete({}, {"problem": "SRC001 no route", "retryable": retryable})


def test_a_corrupt_log_ends_the_wait(harness: RunHarness) -> None:
    newest = harness.replicator.log.sealed()
    manifest = harness.folder / "staging" / "shop" / manifest_path(newest)
    event = fired(harness, lambda: manifest.write_text("{") and None)
    assert event.payload["problem"].startswith("STG") and not event.payload["retryable"]


def test_the_definition_is_read_from_the_yaml_and_shown_unchanged() -> None:
    shop = definition_of(SHOP)
    assert shop["name"] == "shop"
    waiting = ChangesAvailableSensor(task_id="changes", definition=shop)
    waiting.render_template_fields({})
    assert waiting.definition == shop
