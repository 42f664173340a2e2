"""An approval counts for the resync it was given to; of several decisions the one that was written last."""

from __future__ import annotations

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from airflow_cdc_provider.core.decisions import operator_decisions
from airflow_cdc_provider.core.decisions.operator_decisions import (
    DecisionKind,
    OperatorDecision,
    decision_path,
    decisions_by_record,
    find_delete_approval,
    new_decision,
)
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore

STATE = State(TableState.RESYNCING, "2026-11-21T12:00:00.000+00:00", command="c1")
OPEN = ("c1",)
APPROVAL = OperatorDecision(
    "1", DecisionKind.APPROVE_DELETES, "shop", "public.a", "anna", "2026-11-21T12:02:00.000+00:00", command="c1"
)


def test_an_approval_counts_for_the_resync_of_its_command() -> None:
    assert find_delete_approval([APPROVAL], "public.a", STATE, OPEN) is APPROVAL


def test_an_approval_of_another_resync_or_table_does_not_count_whatever_the_clocks_say() -> None:
    others = [replace(APPROVAL, command="c0"), replace(APPROVAL, command=""), replace(APPROVAL, table="public.b")]
    assert find_delete_approval(others, "public.a", STATE, OPEN) is None
    assert find_delete_approval(others, "public.a", replace(STATE, command=""), OPEN) is None


def test_an_approval_ends_with_its_resync() -> None:
    assert find_delete_approval([APPROVAL], "public.a", replace(STATE, name=TableState.REPLICATING), OPEN) is None


def test_an_approval_ends_with_its_command() -> None:
    """A command ends for a table that leaves the YAML; the unfinished resync goes on when the table returns."""
    assert find_delete_approval([APPROVAL], "public.a", STATE, ()) is None


class Clock:
    """Of a host."""

    def __init__(self, minute: int) -> None:
        self.minute = minute

    def now(self, zone: object) -> datetime:
        return datetime(2026, 11, 21, 12, self.minute, tzinfo=UTC)


def decide(log: ChangeLog, kind: DecisionKind) -> OperatorDecision:
    return log.write_decision(new_decision(kind, "shop", "public.a", "ann", "r1", record="r1"))


class CountingStore(LocalStore):
    listed = 0

    def names(self, path: str) -> list[str]:
        self.listed += 1
        return super().names(path)


def test_many_decisions_list_the_folder_once(tmp_path: Path) -> None:
    store = CountingStore(str(tmp_path))
    log = ChangeLog(store)
    first = decide(log, DecisionKind.REPLAY)
    others = [new_decision(DecisionKind.DISCARD, "shop", "public.a", "ann", one, record=one) for one in "abcdefgh"]
    store.listed = 0
    written = log.write_decisions(others)
    assert store.listed == 1
    assert log.decisions() == [first, *written] and [one.record for one in written] == list("abcdefgh")


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    return ChangeLog(LocalStore(str(tmp_path / "shop")))


def test_the_decision_that_was_written_last_counts_whatever_the_clocks_of_hosts_show(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for minute, kind in ((30, DecisionKind.REPLAY), (10, DecisionKind.DISCARD)):
        monkeypatch.setattr(operator_decisions, "datetime", Clock(minute))
        last = decide(log, kind)
    assert decisions_by_record(log.decisions(), "public.a") == {"r1": last}
    assert (last.kind, last.decided_at) == (DecisionKind.DISCARD, "2026-11-21T12:10:00.000+00:00")


def test_decisions_with_ids_of_the_former_form_are_read_and_are_older(log: ChangeLog) -> None:
    """Those were named by the time of their decision."""
    former = OperatorDecision(
        "29991121T120000000000-r1", DecisionKind.REPLAY, "shop", "public.a", "ann", "", record="r1"
    )
    assert log.store.create(decision_path(former.id), json.dumps(to_plain(former)).encode())
    assert decisions_by_record(log.decisions(), "public.a") == {"r1": former}
    last = decide(log, DecisionKind.DISCARD)
    assert log.decisions() == [former, last] and decisions_by_record(log.decisions(), "public.a") == {"r1": last}


def _decide(arguments: tuple[str, int]) -> str:
    folder, number = arguments
    log = ChangeLog(LocalStore(folder))
    about = f"r{number}"
    return log.write_decision(new_decision(DecisionKind.REPLAY, "shop", "public.a", "ann", about, record=about)).id


def test_decisions_of_many_processes_have_one_number_each(tmp_path: Path) -> None:
    folder = str(tmp_path / "shop")
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        ids = list(pool.map(_decide, [(folder, number) for number in range(20)]))
    written = ChangeLog(LocalStore(folder)).decisions()
    assert [one.id for one in written] == sorted(ids)
    assert [one.id.partition("-")[0] for one in written] == [f"n{number:09d}" for number in range(1, 21)]


def test_a_decision_is_made_of_all_that_were_written_before_it(log: ChangeLog) -> None:
    seen = list[int]()

    def make(earlier: object) -> OperatorDecision:
        seen.append(len(earlier))  # type: ignore[arg-type]
        if len(seen) == 1:
            decide(log, DecisionKind.DISCARD)
        return new_decision(DecisionKind.REPLAY, "shop", "public.a", "ann", "r1", record="r1")

    made = log.decide(make)
    assert seen == [0, 1] and log.decisions()[-1] == made
    assert log.decide(lambda earlier: earlier[-1]) == made and len(log.decisions()) == 2, "it is there already"
