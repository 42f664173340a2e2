"""The state store: a SQLite file, as on one host, and a PostgreSQL server, as on several."""

from __future__ import annotations

import multiprocessing
import time
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from airflow_cdc_provider.core.assessment.copy_rate import COPIES
from airflow_cdc_provider.core.decisions.alerts import WHOLE_REPLICATOR, Alert
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.stream_positions import StreamPositions
from airflow_cdc_provider.core.errors import CheckFailed, CommandRefused, StateUnavailable
from airflow_cdc_provider.core.spec.notifications import NotifyOn
from airflow_cdc_provider.core.table.past_states import PastState
from airflow_cdc_provider.core.table.state_rows import AttemptRow, Lane, TableRow
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import parse_utc
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.state import tables
from airflow_cdc_provider.state.engine import open_engine
from airflow_cdc_provider.state.store import StateStore

HOUR_S = 3600.0


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/cdc/state.db"
    server: EmbeddedPostgres = request.getfixturevalue("server")
    name = f"state_{uuid.uuid4().hex}"
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql+psycopg://{server.user}:{server.password}@127.0.0.1:{server.port}/{name}"


@pytest.fixture
def store(url: str) -> StateStore:
    return StateStore(url)


def test_the_owner_is_created_once_and_every_client_reads_the_same(store: StateStore, url: str) -> None:
    assert store.owner() == StateStore(url).owner()
    assert len(store.owner()) == 36


def test_two_stores_have_two_owners(store: StateStore, tmp_path: Path) -> None:
    assert store.owner() != StateStore(f"sqlite:///{tmp_path}/other.db").owner()


def test_one_run_at_a_time_has_the_lease_of_a_lane(store: StateStore) -> None:
    assert store.acquire("shop", Lane.STREAM, "run-1", HOUR_S)
    assert not store.acquire("shop", Lane.STREAM, "run-2", HOUR_S)
    assert store.holder("shop", Lane.STREAM) == "run-1"


def test_leases_of_different_lanes_and_replicators_are_independent(store: StateStore) -> None:
    assert store.acquire("shop", Lane.STREAM, "run-1", HOUR_S)
    assert store.acquire("shop", Lane.COPY, "run-2", HOUR_S)
    assert store.acquire("crm", Lane.STREAM, "run-3", HOUR_S)


def test_a_retried_task_of_the_same_run_gets_its_lease_again(store: StateStore) -> None:
    assert store.acquire("shop", Lane.STREAM, "run-1", HOUR_S)
    assert store.acquire("shop", Lane.STREAM, "run-1", HOUR_S)


def test_an_expired_lease_is_free_and_its_old_holder_cannot_renew_it(store: StateStore) -> None:
    assert store.acquire("shop", Lane.STREAM, "run-1", 0)
    assert store.holder("shop", Lane.STREAM) is None
    assert not store.renew("shop", Lane.STREAM, "run-1", HOUR_S), "an expired lease cannot be renewed"
    assert store.acquire("shop", Lane.STREAM, "run-2", HOUR_S)
    assert not store.renew("shop", Lane.STREAM, "run-1", HOUR_S)
    assert store.holder("shop", Lane.STREAM) == "run-2"


def test_its_clock_is_that_of_the_database_whatever_the_clock_of_the_host(
    store: StateStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert abs((parse_utc(store.now()) - datetime.now(UTC)).total_seconds()) < 60
    shifted = time.time() - HOUR_S
    monkeypatch.setattr("airflow_cdc_provider.state.database.time.time", lambda: shifted)
    behind_s = (datetime.now(UTC) - parse_utc(store.now())).total_seconds()
    assert abs(behind_s - (HOUR_S if url.startswith("sqlite") else 0)) < 60


def test_only_the_holder_releases_a_lease(store: StateStore) -> None:
    store.acquire("shop", Lane.STREAM, "run-1", HOUR_S)
    assert not store.release("shop", Lane.STREAM, "run-2")
    assert store.release("shop", Lane.STREAM, "run-1")
    assert store.holder("shop", Lane.STREAM) is None


def _race(arguments: tuple[str, int]) -> bool:
    url, number = arguments
    return StateStore(url).acquire("shop", Lane.STREAM, f"run-{number}", HOUR_S)


def test_one_of_many_concurrent_processes_gets_the_lease_of_a_new_store(url: str) -> None:
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        won = list(pool.map(_race, [(url, number) for number in range(12)]))
    assert won.count(True) == 1
    with open_engine(url).begin() as connection:
        assert len(connection.execute(sa.select(tables.schema)).all()) == 1


def test_the_same_key_is_the_same_request(store: StateStore) -> None:
    first = store.request("shop", CommandKind.PAUSE, ["public.b", "public.a"], {}, "k1", "ann")
    again = store.request("shop", CommandKind.PAUSE, ["public.a", "public.b"], {}, "k1", "bob")
    assert again == first
    assert len(store.pending("shop")) == 1
    assert first.requested_by == "ann" and first.tables == ("public.a", "public.b")


def test_a_key_used_for_another_request_is_refused(store: StateStore) -> None:
    store.request("shop", CommandKind.PAUSE, [], {}, "k1", "ann")
    with pytest.raises(CommandRefused, match=r"CMD002.*found: pause of all tables"):
        store.request("shop", CommandKind.RESUME, [], {}, "k1", "ann")


def test_requests_are_pending_in_the_order_they_came_until_they_are_finished(store: StateStore) -> None:
    ids = [store.request("shop", CommandKind.VERIFY, [], {}, f"k{n}", "ann").id for n in range(3)]
    assert store.start(ids[0], "run-1")
    assert [command.id for command in store.pending("shop")] == ids
    assert store.finish(ids[0], "identical", {"public.a": True})
    assert [command.id for command in store.pending("shop")] == ids[1:]
    done = store.command(ids[0])
    assert done and done.finished and done.status is CommandStatus.DONE and done.result == {"public.a": True}


def test_the_first_end_of_a_request_counts(store: StateStore) -> None:
    command = store.request("shop", CommandKind.VERIFY, [], {}, "k", "ann")
    assert store.finish(command.id, "first", {}, failed=True)
    assert not store.finish(command.id, "second", {})
    assert not store.start(command.id, "run-9")
    ended = store.command(command.id)
    assert ended and ended.outcome == "first" and ended.status is CommandStatus.FAILED


def test_an_attempt_is_open_until_the_end_of_its_driver_was_seen(store: StateStore) -> None:
    for _ in range(2):
        store.open_attempt(
            AttemptRow("a1", "shop", "merge", "run-1", "merge", 1, "steps/run-1/merge/1", ("public.a",), "2026-05-01")
        )
    (attempt,) = store.open_attempts("shop")
    assert (attempt.tables, attempt.folder) == (("public.a",), "steps/run-1/merge/1")
    assert store.close_attempt("a1", "done")
    assert not store.close_attempt("a1", "done")
    assert store.open_attempts("shop") == ()


def test_the_last_attempts_that_ended_are_found_by_their_kind(store: StateStore) -> None:
    for number, kind in enumerate(("snapshot", "merge", "resync", "snapshot", "snapshot"), 1):
        at = f"2026-05-0{number}"
        store.open_attempt(AttemptRow(f"a{number}", "shop", kind, "r", kind, number, f"f{number}", ("public.a",), at))
        if number < 5:
            store.close_attempt(f"a{number}", "done")
    assert [attempt.id for attempt in store.ended_attempts("shop", COPIES, 2)] == ["a4", "a3"]
    assert [attempt.id for attempt in store.ended_attempts("shop", COPIES, 9)] == ["a4", "a3", "a1"]
    assert store.ended_attempts("crm", COPIES, 9) == ()


def test_a_table_is_claimed_by_one_run_and_keeps_its_first_window(store: StateStore) -> None:
    assert store.claim("shop", "public.a", "run-1", 4)
    assert store.claim("shop", "public.a", "run-1", 9)
    assert not store.claim("shop", "public.a", "run-2", 9)
    assert not store.release_claim("shop", "public.a", "run-2")
    (claim,) = store.claims("shop")
    assert (claim.run_id, claim.sealed_window) == ("run-1", 4)
    assert store.release_claim("shop", "public.a", "run-1")
    assert store.claims("shop") == ()


def test_a_new_row_of_a_table_replaces_only_its_old_one(store: StateStore) -> None:
    a, b = (TableRow(f"public.{n}", n, TableState.REPLICATING, window=1) for n in "ab")
    replicating = PastState(TableState.REPLICATING, "")
    b_written = replace(b, history=(replicating,))
    assert store.change_tables("shop", lambda _: [a, b]) == (replace(a, history=(replicating,)), b_written)
    changed = TableRow("public.a", "a", TableState.FAILING, "now", attempts=2, error="SRC001", changes={"insert": 3})
    store.change_tables("shop", lambda _: [changed])
    a_written = replace(changed, history=(replicating, PastState(TableState.FAILING, "now")))
    assert store.tables("shop") == {"public.a": a_written, "public.b": b_written}
    assert store.tables("crm") == {}


def test_a_row_with_a_concurrent_change_is_computed_again(store: StateStore, url: str) -> None:
    store.change_tables("shop", lambda _: [TableRow("public.a", "a", TableState.REPLICATING)])
    seen = []

    def counted(rows: Mapping[str, TableRow]) -> list[TableRow]:
        seen.append(rows["public.a"].attempts)
        if len(seen) == 1:
            other = TableRow("public.b", "b", TableState.PENDING)
            changed = replace(rows["public.a"], attempts=5)
            StateStore(url).change_tables("shop", lambda _: [changed, other])
        new = TableRow("public.b", "b", TableState.REPLICATING)
        return [replace(rows["public.a"], attempts=rows["public.a"].attempts + 1), rows.get("public.b", new)]

    store.change_tables("shop", counted)
    assert seen == [0, 5]
    assert {table: row.attempts for table, row in store.tables("shop").items()} == {"public.a": 6, "public.b": 0}
    assert store.tables("shop")["public.b"].state is TableState.PENDING


def _count(arguments: tuple[str, int]) -> None:
    url, times = arguments

    def more(rows: Mapping[str, TableRow]) -> list[TableRow]:
        row = rows.get("public.a") or TableRow("public.a", "a", TableState.REPLICATING)
        return [replace(row, attempts=row.attempts + 1)]

    for _ in range(times):
        StateStore(url).change_tables("shop", more)


def test_no_change_of_a_row_is_lost_among_many_processes(url: str) -> None:
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_count, [(url, 5)] * 3))
    assert StateStore(url).tables("shop")["public.a"].attempts == 15


@pytest.mark.parametrize("url", ["mysql+pymysql://cdc:geheim@db/cdc", "oracle://db/cdc", "aws://key:geheim@/"])
def test_any_other_database_is_refused(url: str) -> None:
    with pytest.raises(CheckFailed, match=r"STA021.*allowed: sqlite, postgresql.*do: airflow connections") as caught:
        StateStore(url).owner()
    assert "geheim" not in str(caught.value)


def test_positions_are_updated_by_field(store: StateStore) -> None:
    store.positions.update("shop", end={"slot": "7"}, end_at="2026-01-01")
    store.positions.update("shop", window=2, read={"slot": "5"}, confirmed={"slot": "4"}, confirmed_at="2026-01-02")
    store.positions.update("shop", end={"slot": "8"})
    seen = StreamPositions({"slot": "8"}, "2026-01-01", 2, {"slot": "5"}, {"slot": "4"}, "2026-01-02")
    assert (store.positions.get("shop"), store.positions.get("other")) == (seen, StreamPositions())


def test_the_audit_gives_the_latest_lines_first(store: StateStore) -> None:
    for number in range(5):
        store.write_audit("shop", "ann", "pause", {"number": number})
    assert [note.detail["number"] for note in store.audit("shop", 2)] == [4, 3]


def test_an_entry_that_the_audit_has_is_not_made_again_also_by_concurrent_writers(store: StateStore) -> None:
    def write(number: int) -> None:
        store.write_audit("shop", "ann", "decide", {"question": number % 2}, once=True)

    store.owner()
    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, range(16)))
    assert sorted(note.detail["question"] for note in store.audit("shop", 100)) == [0, 1]


def test_a_store_of_a_newer_version_is_refused(store: StateStore, url: str) -> None:
    store.owner()
    with open_engine(url).begin() as connection:
        connection.execute(tables.schema.update().values(version=99))
    with pytest.raises(CheckFailed, match=r"STA002.*schema version 99.*allowed: up to 5"):
        StateStore(url).owner()


def test_an_older_store_is_upgraded_and_keeps_its_rows(store: StateStore, url: str) -> None:
    owner = store.owner()

    def add_colour(connection: sa.Connection) -> None:
        connection.exec_driver_sql("ALTER TABLE cdc_table ADD COLUMN colour TEXT")

    for _ in range(2):
        with open_engine(url).begin() as connection:
            tables.upgrade(connection, (*tables.STEPS, add_colour))
            assert connection.execute(sa.select(tables.schema)).all() == [(len(tables.STEPS) + 1, owner)]
            connection.exec_driver_sql("SELECT colour FROM cdc_table")


def test_a_store_of_the_first_version_gets_the_entries_of_replicators(store: StateStore, url: str) -> None:
    owner = store.owner()
    with open_engine(url).begin() as connection:
        tables.replicators.drop(connection)
        connection.execute(tables.schema.update().values(version=1))
    older = StateStore(url)
    assert (older.replicators.all(), older.owner()) == ({}, owner)


def test_a_file_that_is_no_database_is_reported_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"not a database, but long enough to look like a corrupt one" * 20)
    with pytest.raises(StateUnavailable, match=r"STA010.*state rebuild"):
        StateStore(f"sqlite:///{path}").owner()


def test_an_unreachable_database_is_retryable_and_its_password_stays_secret() -> None:
    store = StateStore("postgresql+psycopg://cdc:geheim@127.0.0.1:9/cdc")
    with pytest.raises(StateUnavailable) as caught:
        store.owner()
    assert caught.value.retryable
    assert "geheim" not in str(caught.value)


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "cdc").write_text("a file")
    with pytest.raises(StateUnavailable, match=f"STA010.*{tmp_path}/cdc/state.db"):
        StateStore(f"sqlite:///{tmp_path}/cdc/state.db").owner()


@pytest.mark.parametrize("url", ["postgresql+nosuch://u:s3cret@h/db", "sqlite+pysqlcipher:///x.db", "no url"])
def test_a_missing_driver_and_an_invalid_url_are_refused_with_a_remedy(url: str) -> None:
    with pytest.raises(CheckFailed, match=r"STA021.*connection cdc_state.*do: airflow connections") as caught:
        StateStore(url).owner()
    assert "s3cret" not in str(caught.value)


def test_a_summary_follows_the_rows_of_its_replicator_alone(store: StateStore) -> None:
    rows = [TableRow(f"public.{n}", n, TableState.REPLICATING, rows=3) for n in "ab"]
    store.change_tables("shop", lambda _: rows)
    store.change_tables("other", lambda _: rows[:1])
    assert store.summaries(["shop"])["shop"].states == {"replicating": 2}
    store.change_tables("shop", lambda _: [replace(rows[0], state=TableState.PAUSED)])
    found = store.summaries(["shop", "other", "unknown"])
    assert found["shop"].states == {"paused": 1, "replicating": 1} and found["shop"].rows == 6
    assert (found["other"].tables, found["unknown"].tables) == (1, 0)
    store.replicators.rename_rows("shop", "store")
    assert [store.summaries([name])[name].tables for name in ("shop", "store")] == [0, 2]
    store.replicators.remove_rows("store", lambda entry: entry)
    assert store.summaries(["store"])["store"].tables == 0


def test_a_store_of_an_earlier_version_has_summaries_without_a_run(store: StateStore) -> None:
    store.change_tables("shop", lambda _: [TableRow("public.a", "a", TableState.REPLICATING)])
    with store.database.transaction() as connection:
        tables.summaries.drop(connection)
        connection.execute(tables.schema.update().values(version=2))
    upgraded = StateStore(store.database.url)
    assert upgraded.summaries(["shop"])["shop"].states == {"replicating": 1}
    upgraded.change_tables("shop", lambda before: [replace(before["public.a"], state=TableState.PAUSED)])
    assert upgraded.summaries(["shop"])["shop"].states == {"paused": 1}


def test_alerts_and_what_is_to_be_sent_change_together_and_follow_a_rename(store: StateStore) -> None:
    late = Alert("public.a", "late", NotifyOn.LATE, "2026-01-01", "old")
    run = Alert(WHOLE_REPLICATOR, "failing", NotifyOn.FAILING, "2026-01-01", "no route to host")
    store.alerts.change("shop", [late, run], whole_replicator=True)
    store.alerts.change("shop", [late], whole_replicator=False)
    assert set(store.alerts.open("shop")) == {late, run}
    sent = store.alerts.waiting("shop")
    assert [one.notice.alert for one in sent] == [late, run]
    store.alerts.delivered(sent[:1], "one")
    store.alerts.delivered(sent[:1], "two")
    assert [one.delivered for one in store.alerts.waiting("shop")] == [("one", "two"), ()]
    store.alerts.remove([sent[0].number])
    store.alerts.change("shop", [], whole_replicator=True)
    sent = [one.notice for one in store.alerts.waiting("shop")]
    assert [notice.alert.kind for notice in sent] == [NotifyOn.FAILING, NotifyOn.RECOVERED, NotifyOn.RECOVERED]
    store.replicators.rename_rows("shop", "store")
    assert store.alerts.replicators() == {"store"}
    store.replicators.remove_rows("store", lambda entry: entry)
    assert store.alerts.replicators() == frozenset()


def test_a_store_of_the_fourth_version_gets_alerts(store: StateStore) -> None:
    store.owner()
    with store.database.transaction() as connection:
        tables.alerts.drop(connection)
        tables.notices.drop(connection)
        connection.execute(tables.schema.update().values(version=4))
    assert StateStore(store.database.url).alerts.replicators() == frozenset()


def test_tables_are_read_a_page_at_a_time(store: StateStore) -> None:
    store.change_tables("shop", lambda _: [TableRow(f"public.{n}", n, TableState.PENDING) for n in "cab"])
    store.change_tables("other", lambda _: [TableRow("public.d", "d", TableState.PENDING)])
    assert [row.table for row in store.tables_page("shop", "", 2)] == ["public.a", "public.b"]
    assert [row.table for row in store.tables_page("shop", "public.b", 2)] == ["public.c"]
