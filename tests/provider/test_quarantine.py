"""Bad records as an operator sees them: listed, shown, tried again, given up; and the runs that carry that out."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandStatus
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.log.carry_over import NOTHING, CarryOver
from airflow_cdc_provider.core.log.change_log import DataFile, quarantine_path
from airflow_cdc_provider.core.log.change_records import ChangeRecord
from airflow_cdc_provider.core.log.quarantine import BadRecord, QuarantinedRecord, QuarantineList
from airflow_cdc_provider.core.table.states import TableState
from tests.provider.small_world import World
from tests.provider.typed import Type, replicated

TABLE = "public.a"
SINCE = "2026-01-01T00:00:00.000+00:00"


def put_aside(world: World, *ids: str, window: int = 1) -> None:
    for number, one in enumerate(ids):
        record = ChangeRecord(TABLE, "unreadable", f"{number:04d}", "s", after="{}")
        raw = b64encode(b"caf\xe9").decode()
        bad = BadRecord(one, TABLE, window, '{"lsn": "0/1"}', "pgoutput 1", raw, "no date", SINCE, record)
        world.replicator.log.store.create(quarantine_path(TABLE, one), bad.encode())


def carry(world: World, *ids: str) -> CarryOver:
    if not ids:
        return NOTHING
    listing = QuarantineList(tuple(QuarantinedRecord(one, 1, SINCE, "no date", behind=2) for one in ids))
    file = DataFile(f"carry/{TABLE}/{'-'.join(ids)}/listing.json", len(ids), 0, "")
    world.replicator.log.store.write(file.path, listing.encode())
    return CarryOver((), {"quarantined": len(ids), "parked": 2 * len(ids)}, file)


@pytest.fixture
def put(world: World) -> World:
    """Two records of ``public.a`` wait, each with two behind it."""
    replicated(world)
    put_aside(world, "one", "two")
    world.commit("public_a", world.control(TABLE).fenced(carry=carry(world, "one", "two"), attempt="merge"))
    return world


def staged_and_merged(world: World, run_id: str, *left: str) -> None:
    """What the Spark steps of the run do: they let go what was decided about."""
    plan = world.replicator.run(run_id).plan()
    record = world.control(TABLE).fenced(carry=carry(world, *left), attempt="merge")
    world.commit("public_a", record)
    done = TableResult(TABLE, Outcome.DONE, 3, {"updated": 3}, record.fence, record.window)
    world.say(plan.run_id, "stage", StepKind.STAGE, [])
    world.say(plan.run_id, "merge", StepKind.MERGE, [done])


def test_what_waits_is_listed_with_its_age_and_what_is_behind_it_but_without_values(cdc: Type, put: World) -> None:
    body = cdc("quarantine", "list", "shop", "--json").body
    assert [(one["id"], one["parked"], one["blocks_table"], one["decision"]) for one in body["records"]] == [
        ("one", 2, False, None),
        ("two", 2, False, None),
    ]
    assert "raw" not in body["records"][0] and "record" not in body["records"][0]
    said = cdc("quarantine", "list", "shop")
    assert "no date" in said.out and re.search(r"\d+ (days?|weeks?|months?|years?)", said.out)
    assert cdc("quarantine", "list", "shop", "--table", "public.b").out.strip() == "no records in quarantine"


def test_a_record_is_shown_with_its_bytes_and_who_looked_is_noted(cdc: Type, put: World) -> None:
    said = cdc("quarantine", "show", "shop", "one")
    assert "b'caf\\xe9'" in said.out and "0/1" in said.out
    assert cdc("quarantine", "show", "shop", "one", "--json").body["codec"] == "pgoutput 1"
    assert [note.action for note in put.state.audit("shop", 2)] == ["quarantine show", "quarantine show"]
    missing = cdc("quarantine", "show", "shop", "three")
    assert missing.code == 66 and "CLI015" in missing.err


def test_what_is_decided_stands_in_staging_before_the_request_and_a_run_carries_it_out(cdc: Type, put: World) -> None:
    said = cdc("quarantine", "replay", "shop", "one", "--set", "name=2026-01-01", "--set", "id=7", "--json")
    assert (said.code, said.body["status"]) == (0, "pending")
    (decision,) = put.replicator.log.decisions()
    assert (decision.record, decision.kind, decision.values) == ("one", "replay", {"name": "2026-01-01", "id": 7})
    again = cdc("quarantine", "replay", "shop", "one", "--set", "name=2026-01-01", "--set", "id=7", "--json")
    assert again.body["id"] == said.body["id"] and len(put.replicator.log.decisions()) == 1, "again changes nothing"

    opened = put.open("r2")
    assert opened.follow == ("stage", "close_window") and opened.plan.stream == (TABLE, "public.b")
    staged_and_merged(put, "r2", "two")
    assert put.close("r2").problems == ()
    request = put.state.command(said.body["id"])
    assert request is not None and (request.status, request.outcome) == (CommandStatus.DONE, "replay: one")
    assert "public.a: 1 records in quarantine, 2 parked behind them; run `airflow cdc quarantine list shop`" in put.told
    done = cdc("quarantine", "replay", "shop", "one")
    assert done.code == 0 and "is no longer in quarantine" in done.out
    assert put.open("r3").follow == ("close_window",)


def test_a_record_that_is_still_bad_fails_the_request_and_no_run_tries_for_ever(cdc: Type, put: World) -> None:
    asked = cdc("quarantine", "replay", "shop", "--table", TABLE, "--json").body
    assert asked["records"] == ["one", "two"]
    put.open("r2")
    put.say("r2", "stage", StepKind.STAGE, [TableResult(TABLE, Outcome.UNCHANGED)])
    put.close("r2")
    request = put.state.command(asked["id"])
    assert (
        request is not None
        and request.status is CommandStatus.FAILED
        and "one is still bad: no date" in request.outcome
    )
    assert put.open("r3").follow == ("close_window",)


def test_nothing_is_given_up_without_a_reason(cdc: Type, put: World) -> None:
    assert cdc("quarantine", "discard", "shop", "one").code == 64
    assert cdc("quarantine", "discard", "shop", "--reason", "why not").code == 64
    assert cdc("quarantine", "replay", "shop", "one", "two", "--set", "n=1").code == 64
    assert cdc("quarantine", "replay", "shop", "one", "--set", "n").code == 64
    unknown = cdc("quarantine", "replay", "shop", "one", "--set", "n=1")
    assert unknown.code == 64 and "allowed: id, name" in unknown.err
    assert put.replicator.log.decisions() == []
    said = cdc("quarantine", "discard", "shop", "one", "--reason", "test data", "--json")
    (decision,) = put.replicator.log.decisions()
    assert (said.code, decision.kind, decision.reason) == (0, "discard", "test data")
    (note,) = put.state.audit("shop", 1)
    assert (note.action, note.detail["record"], note.detail["reason"]) == ("quarantine discard", "one", "test data")
    changed = cdc("quarantine", "replay", "shop", "one", "--json")
    assert changed.code == 0 and len(put.replicator.log.decisions()) == 2, "the newest decision counts"


def test_a_record_that_stops_its_table_is_decided_about_before_the_table_goes_on(cdc: Type, world: World) -> None:
    replicated(world)
    put_aside(world, "one", window=2)
    blocked = replace(world.control(TABLE).state, name=TableState.BLOCKED, reason="a record", remedy="decide")
    world.commit("public_a", world.control(TABLE).fenced(blocked))
    (listed,) = cdc("quarantine", "list", "shop", "--json").body["records"]
    assert (listed["id"], listed["blocks_table"]) == ("one", True)
    said = cdc("quarantine", "discard", "shop", "one", "--reason", "test data")
    assert said.code == 0 and "run `airflow cdc resume shop --table public.a`" in said.out
    assert world.open("r2").follow == ("close_window",)
    assert len(world.state.pending("shop")) == 1, "it waits for the table"


def test_status_tells_how_many_records_wait(cdc: Type, put: World) -> None:
    cdc("pause", "shop", "--table", TABLE)
    first = cdc("status", "shop", "--json").body["tables"][0]
    assert (first["table"], first["quarantined"], first["parked"]) == (TABLE, 2, 4)
    assert "2 (+4 parked)" in cdc("status", "shop").out
    row = put.state.tables("shop")[TABLE]
    put.state.change_tables("shop", lambda _: [replace(row, changes={"updated": 7, "discarded": 3})])
    told = cdc("status", "shop").out
    assert "2 (+4 parked), 3 discarded" in told and " 7 " in told, "what was given up is no change"


def test_bad_records_are_kept_while_a_version_names_them_or_the_table_stands_before_them(put: World) -> None:
    log = put.replicator.log
    put_aside(put, "later", window=9)
    kept = world_files(put)
    log.remove_old_controls(TABLE, put.control(TABLE).token)
    assert world_files(put) == kept
    put.commit("public_a", put.control(TABLE).fenced(carry=carry(put, "two"), attempt="merge"))
    log.remove_old_controls(TABLE, 0)
    assert world_files(put) == kept, "the version before can still be restored"
    log.remove_old_controls(TABLE, put.control(TABLE).token)
    assert world_files(put) == {"later.json", "two.json"}


def world_files(world: World) -> set[str]:
    return set(world.replicator.log.store.names(f"quarantine/{TABLE}"))
