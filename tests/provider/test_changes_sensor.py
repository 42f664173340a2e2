"""Waiting for changes, on a worker and in the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.triggers.base import TriggerEvent

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.log.change_log import manifest_path
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.factory import definition_of
from airflow_cdc_provider.operators import replicator_task
from airflow_cdc_provider.operators.failures import TaskFailed
from airflow_cdc_provider.sensors.changes import ChangesAvailableSensor
from airflow_cdc_provider.triggers.changes import ChangesTrigger
from tests.provider.small_world import World

SHOP = Path(__file__).parents[2] / "dags" / "replicators" / "shop.yaml"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """One that was copied and is at rest; what opens a replicator opens this one."""
    made = World(tmp_path)
    made.run("r1")

    def opened(definition: Definition, *_: object) -> Any:
        assert definition == made.definition
        return made.replicator

    monkeypatch.setattr(replicator_task, "open_replicator", opened)
    monkeypatch.setattr(replicator_task, "secrets_of", lambda definition: None)
    monkeypatch.setattr(replicator_task, "open_state", lambda: None)
    return made


def sensor(world: World, **more: Any) -> ChangesAvailableSensor:
    return ChangesAvailableSensor(task_id="changes", definition=to_plain(world.definition), **more)


def test_a_source_at_rest_is_waited_for_until_it_moves(world: World) -> None:
    waiting = sensor(world)
    assert not waiting.poke({})
    world.source.change("public.a")
    assert waiting.poke({})
    world.run("r2")
    assert not waiting.poke({})


def ask(world: World) -> None:
    world.state.request("shop", CommandKind.RESYNC, ["public.a"], {}, "key", "operator")


@pytest.mark.parametrize(
    ("happens", "worth"),
    [
        pytest.param(ask, True, id="a request"),
        pytest.param(lambda world: world.source.write(end=500), True, id="nothing but changes of others"),
        pytest.param(lambda world: world.source.write(slot=None), False, id="a stream that is lost"),
    ],
)
def test_a_run_is_worth_it_where_it_could_move_anything(
    world: World, happens: Callable[[World], None], worth: bool
) -> None:
    happens(world)
    assert sensor(world).poke({}) == worth


def test_before_the_first_copy_there_is_something_to_do(tmp_path: Path, world: World) -> None:
    assert not sensor(world).poke({})
    (tmp_path / "fresh").mkdir()
    fresh = World(tmp_path / "fresh")
    world.folder, world.definition, world.source = fresh.folder, fresh.definition, fresh.source
    assert sensor(world).poke({})


def test_in_the_triggerer_it_waits_for_as_long_as_it_would_on_a_worker(world: World) -> None:
    waiting = sensor(world, deferrable=True, poke_interval=7, timeout=90)
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    trigger = deferred.value.trigger
    assert isinstance(trigger, ChangesTrigger)
    assert (deferred.value.method_name, deferred.value.timeout) == ("execute_complete", timedelta(seconds=90))
    path, told = trigger.serialize()
    assert path == "airflow_cdc_provider.triggers.changes.ChangesTrigger"
    assert told == {"definition": to_plain(world.definition), "poke_interval": 7}
    world.source.change("public.a")
    waiting.execute({})


def fired(world: World, then: Callable[[], None]) -> TriggerEvent:
    async def first() -> TriggerEvent:
        asyncio.get_running_loop().call_later(0.2, then)
        return await anext(ChangesTrigger(to_plain(world.definition), 0.05).run())

    return asyncio.run(asyncio.wait_for(first(), 20))


def test_the_trigger_fires_once_there_is_something(world: World) -> None:
    event = fired(world, lambda: world.source.change("public.b"))
    assert event.payload == {}
    sensor(world).execute_complete({}, event.payload)


@pytest.mark.parametrize(("retryable", "kind"), [(True, TaskFailed), (False, AirflowFailException)])
def test_what_goes_wrong_in_the_triggerer_fails_the_task_in_its_own_words(
    world: World, retryable: bool, kind: type[Exception]
) -> None:
    with pytest.raises(kind, match="SRC001 no route"):
        sensor(world).execute_complete({}, {"problem": "SRC001 no route", "retryable": retryable})


def test_a_log_that_is_damaged_ends_the_waiting(world: World) -> None:
    newest = world.replicator.log.sealed()
    manifest = world.folder / "staging" / "shop" / manifest_path(newest)
    event = fired(world, lambda: manifest.write_text("{") and None)
    assert event.payload["problem"].startswith("STG") and not event.payload["retryable"]


def test_the_definition_is_read_from_the_yaml_and_shown_as_it_stands() -> None:
    told = definition_of(SHOP)
    assert told["name"] == "shop"
    waiting = ChangesAvailableSensor(task_id="changes", definition=told)
    waiting.render_template_fields({})
    assert waiting.definition == told
