"""What goes wrong at the two ends between runs: each ends in a clear message, and nothing is lost.

The tests build on each other; the checker judges them all at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import table as arrow

from airflow_cdc_provider.core.spec.definition import Reconcile
from tests.faults.performing import Theatre, quiet
from tests.faults.road import Road
from tests.faults.scenes import asked, done
from tests.faults.world import World
from tests.faults.writer import ACCOUNTS, EVENTS

pytestmark = [pytest.mark.jvm, pytest.mark.server]


@pytest.fixture
def world(stage: Theatre) -> Iterator[World]:
    """What is said of both ends is right again afterwards."""
    made = stage.world_for("delta")
    definition, secrets = made.definition, made.secrets
    yield made
    made.definition, made.secrets = replace(definition, tables=made.definition.tables), secrets


def said(world: World) -> str:
    """What the next run complains of. It never shows the password."""
    road = Road(world).go()
    text = "\n".join(road.said)
    assert not road.green
    assert world.password not in text
    return text


def test_an_unreachable_host_is_named(world: World) -> None:
    world.secrets = replace(world.secrets, source=replace(world.secrets.source, port=1))
    assert "CON010" in (text := said(world)) and "127.0.0.1:1" in text


def test_a_missing_publication_comes_with_its_statement(world: World) -> None:
    world.execute(f"alter publication cdc_{world.name} rename to mislaid")
    text = said(world)
    assert f"cdc_{world.name}" in text and "CREATE PUBLICATION" in text
    world.execute(f"alter publication mislaid rename to cdc_{world.name}")


def test_a_dropped_slot_blocks_until_a_resync_where_nobody_else_may_say_so(world: World) -> None:
    source = replace(world.definition.source, reconcile=Reconcile.MANUAL)
    world.definition = replace(world.definition, source=source)
    with psycopg.connect(world.server.dsn(), autocommit=True) as connection:
        connection.execute("select pg_drop_replication_slot(%s)", [f"cdc_{world.name}"])
    text = said(world)
    assert f"cdc_{world.name}" in text and "airflow cdc resync" in text
    for shape in world.writer.ledger.shapes.values():
        asked(world, "resync", shape.table)


def test_a_table_of_somebody_else_is_left_alone_and_its_siblings_go_on(world: World) -> None:
    shape = world.add_table()
    place = world.folder / "lake" / shape.target
    write_deltalake(place, arrow({"a": [1]}))
    with world.writer.still():  # a truncate would make its sibling's copy begin anew
        text = said(world)
    assert shape.table in text and "TGT001" in text
    assert DeltaTable(place).version() == 0
    assert world.replicator().state.tables(world.name)[EVENTS.table].state == "replicating"
    place.rename(world.folder / "theirs")


def test_a_table_that_was_outside_the_publication_for_a_while_is_copied_again(world: World) -> None:
    assert quiet(world) == []
    world.execute(f"alter publication cdc_{world.name} drop table accounts")
    world.writer.step(5)
    world.execute(f"alter publication cdc_{world.name} add table accounts")
    with world.writer.still():
        road = Road(world).go()
    assert road.green and road.states["reconcile.resync"] == "success", road.said


def test_a_lost_state_store_is_made_anew_and_what_was_paused_stays_so(world: World) -> None:
    asked(world, "pause", ACCOUNTS.table)
    for path in world.folder.glob("state.db*"):
        path.unlink()
    done(world, "rebuild", {})
    assert world.replicator().state.tables(world.name)[ACCOUNTS.table].state == "paused"
    world.writer.step(3)
    Road(world).go()
    assert world.judge.look()[ACCOUNTS.table][-1].state == "paused"
    asked(world, "resume", ACCOUNTS.table)


def test_after_all_this_the_copies_are_true(world: World) -> None:
    assert quiet(world) == []
    assert [*world.judge.judge(), *world.judge.rest()] == []
