"""What a run decides from facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.decisions.commands import Command, CommandKind
from airflow_cdc_provider.core.decisions.facts import Facts, LogFacts, StreamFacts, TableFacts
from airflow_cdc_provider.core.decisions.run_decision import RunDecision, acknowledgeable, decide, effective_window
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.decisions.table_decisions import TableAction, decide_table
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import SCHEMA, DataFile, Hole, Manifest, TableSlice
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Definition, Reconcile, Source, Staging, TableRule, Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import HOLDS_ACKNOWLEDGEMENT, State, TableState

SOURCE = {"system": "7"}
LOST = Problem("SRC030", "the slot is gone")
NEW = StreamFacts(True, {"slot": "9"})
DEFINITION = Definition(
    name="shop",
    source=Source(type="file", connection="db"),
    target=Target(type="files", location="/lake"),
    tables=(TableRule("public.*"),),
    staging=Staging(location="/staging"),
)


def control(table: str, window: int = 3, state: TableState = TableState.REPLICATING, **changes: Any) -> ControlRecord:
    record = ControlRecord(
        replicator="shop",
        table=table,
        log_id="l1",
        owner="o1",
        attempt="a",
        fence=1,
        window=window,
        floor="f",
        state=State(state, "2026-01-01T00:00:00Z", "why", "what to do"),
        manifest_sha256=f"sha-{window}",
        definition_sha256="d1",
        source_identity=SOURCE,
    )
    return replace(record, **changes)


def table(name: str, record: ControlRecord | None = None, key: tuple[str, ...] = ("id",), **facts: Any) -> TableFacts:
    schema = TableSchema(name, (Column("id", LogicalType(Kind.INT64)),), key)
    state = record.state.name if record else TableState.PENDING
    task = TableTask(name, name[-1], schema, DEFINITION.tables[0], "d1", state, record)
    return TableFacts(task, **{"exists": record is not None, **facts})


def log(sealed: int = 3, oldest: int = 1, rows: dict[int, Sequence[str]] | None = None, **changes: Any) -> LogFacts:
    """A log in which every window captured a and b. ``rows``: window → tables with records in it."""
    manifests = {n: manifest(n, (rows or {}).get(n, ())) for n in range(oldest, sealed + 1)}
    sha256 = {n: f"sha-{n}" for n in range(oldest, sealed + 1)}
    facts = LogFacts("l1", oldest, sealed, 1, {"slot": str(sealed)}, manifests, sha256)
    return replace(facts, **changes)


def manifest(number: int, changed: Sequence[str], **changes: Any) -> Manifest:
    def piece(name: str) -> TableSlice:
        return TableSlice("d1", files=(DataFile("f", 1, 1, "s"),) if name in changed else ())

    made = Manifest(
        log_id="l1",
        window=number,
        epoch=1,
        lo={},
        hi={"slot": str(number)},
        previous_sha256="",
        attempt="a",
        sealed_at=f"2026-01-{number:02}T12:00:00+00:00",
        tables={name: piece(name) for name in ("public.a", "public.b")},
    )
    return replace(made, **changes)


def facts(*tables: TableFacts, **changes: Any) -> Facts:
    base = Facts(DEFINITION, "r1", Mode.STREAM, "2026-01-09T00:00:00Z", "o1", SOURCE, log(), StreamFacts(), tables)
    return replace(base, **changes)


def command(kind: CommandKind, *tables: str) -> Command:
    return Command(f"c-{kind}", "shop", kind, tables, {}, "k", "ann", "2026-01-01T00:00:00Z")


A, B = table("public.a", control("public.a")), table("public.b", control("public.b"))


def moves(decision: RunDecision) -> dict[str, TableAction]:
    return {table_decision.table: table_decision.action for table_decision in decision.table_decisions}


def test_without_changes_and_pending_windows_there_is_nothing_to_do() -> None:
    decision = decide(facts(A, B))
    assert decision.follow == ("close_window",)
    assert not decision.needs_stream_lane and not decision.needs_copy_lane


def test_new_changes_are_landed_and_staged_for_all_tables() -> None:
    decision = decide(facts(A, B, stream=NEW))
    assert decision.follow == ("extract", "close_window")
    assert decision.plan.stream == ("public.a", "public.b")
    assert (decision.plan.lo, decision.plan.limit) == ({"slot": "3"}, {"slot": "9"})


def test_only_a_window_with_records_of_the_table_is_pending_for_it() -> None:
    late = table("public.a", control("public.a", window=1))
    assert decide(facts(late, B, log=log(rows={2: ["public.b"]}))).follow == ("close_window",)
    decision = decide(facts(late, B, log=log(rows={3: ["public.a"]})))
    assert decision.follow == ("stage", "close_window")
    assert decision.table_decisions[0].pending_window == 3


@pytest.mark.parametrize("sealed", [0, 3])
def test_a_new_table_is_copied_beside_the_stream(sealed: int) -> None:
    decision = decide(facts(A if sealed else table("public.a"), table("public.c"), log=log(sealed), stream=NEW))
    if sealed == 0:
        assert decision.reopen, "the stream comes first"
    else:
        assert decision.follow == ("snapshot", "extract", "close_window")
        assert decision.plan.copy == ("public.c",)


def test_a_run_without_a_lane_leaves_its_half_to_the_run_that_has_it() -> None:
    both = facts(A, table("public.c"), stream=NEW)
    assert decide(replace(both, copy_lane=False)).follow == ("extract", "close_window")
    assert decide(replace(both, stream_lane=False)).follow == ("snapshot", "close_window")
    neither = decide(replace(both, copy_lane=False, stream_lane=False))
    assert neither.follow == ("close_window",) and len(neither.notes) == 2


def test_a_run_without_the_stream_lane_never_opens_the_stream() -> None:
    decision = decide(facts(table("public.a"), log=LogFacts("l1"), stream_lane=False))
    assert not decision.reopen and decision.follow == ("close_window",)


def test_a_table_that_was_restored_to_an_unknown_version_is_no_foreign_table() -> None:
    foreign, restored = (
        decide_table(facts(), table("public.a", exists=True, known=True, restored=restored)).problem
        for restored in (False, True)
    )
    assert foreign and restored and foreign.code == restored.code == "TGT012"
    assert "is not its copy" in foreign.what and "does not show which changes" in restored.what
    assert "resync" not in foreign.do and restored.do.endswith("airflow cdc resync shop --table public.a")


def test_a_table_that_another_run_copies_is_skipped() -> None:
    decision = decide(facts(A, table("public.c", copied_by="r0"), stream=NEW))
    assert moves(decision)["public.c"] is TableAction.COPYING
    assert decision.plan.copy == ()


def test_an_empty_window_is_sealed_only_when_nothing_else_is_landed() -> None:
    idle = StreamFacts(idle={"slot": "8"})
    assert decide(facts(A, B, stream=idle)).idle == {"slot": "8"}
    assert decide(facts(A, B, stream=idle, stream_lane=False)).idle is None
    assert decide(facts(A, B, stream=idle, commands=(command(CommandKind.VERIFY),))).idle is None


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (control("public.a", replicator="crm"), "STA006"),
        (control("public.a", owner="o2"), "STA007"),
        (control("public.a", log_id="l2"), "LOG001"),
        (control("public.a", window=4), "LOG002"),
        (control("public.a", manifest_sha256="other"), "LOG003"),
        (control("public.a", source_identity={"system": "8"}), "SRC010"),
        (control("public.a", definition_sha256="d2"), "DEF040"),
        (control("public.a", state=TableState.BLOCKED), "TBL001"),
        (control("public.a", state=TableState.REWINDING), "TBL002"),
    ],
)
def test_a_problem_of_a_table_is_reported_with_a_remedy_and_does_not_stop_other_tables(
    record: ControlRecord, code: str
) -> None:
    decision = decide(facts(table("public.a", record), B, stream=NEW))
    problem = decision.table_decisions[0].problem
    assert problem is not None and (problem.code, bool(problem.do)) == (code, True)
    assert moves(decision) == {"public.a": TableAction.BLOCKED, "public.b": TableAction.STREAM}
    assert decision.plan.stream == ("public.b",)


@pytest.mark.parametrize(
    "change",
    [{"owner": "o2"}, {"log_id": "l2"}, {"manifest_sha256": "x"}, {"source_identity": {"system": "8"}}],
)
def test_a_problem_of_all_tables_stops_the_replicator(change: dict[str, Any]) -> None:
    tables = [table(name, control(name, **change)) for name in ("public.a", "public.b")]
    decision = decide(facts(*tables, table("public.c"), stream=replace(NEW, idle={"slot": "9"})))
    assert decision.stop is not None
    assert decision.follow == ("close_window",)
    assert (decision.plan.extract, decision.plan.copy, decision.idle) == (False, (), None)


def test_a_changed_rule_on_every_table_stops_no_landing() -> None:
    decision = decide(facts(table("public.a", control("public.a", definition_sha256="d2")), stream=NEW))
    assert decision.stop is None and decision.plan.extract, "the log keeps what a resync does not replace"


@pytest.mark.parametrize(
    ("kind", "ids"), [("expired", ()), ("untold", ()), ("gap", ()), ("gap", ("[1]",)), ("overflow", ())]
)
def test_no_table_passes_over_a_hole(kind: str, ids: tuple[str, ...]) -> None:
    holes = {3: manifest(3, ["public.a"], holes=(Hole(kind, "public.a", "g", ids),))}
    late = table("public.a", control("public.a", window=2))
    gap = log(manifests={**log().manifests, **holes})
    assert moves(decide(facts(late, B, log=gap, stream=NEW)))["public.a"] is TableAction.BLOCKED
    auto = replace(DEFINITION, source=replace(DEFINITION.source, reconcile=Reconcile.AUTO))
    assert moves(decide(facts(late, B, log=gap, stream=NEW, definition=auto)))["public.a"] is TableAction.RECONCILE
    assert moves(decide(facts(A, B, log=gap, stream=NEW)))["public.a"] is TableAction.STREAM, "the hole is behind it"


def test_a_change_of_columns_amid_a_transaction_is_left_to_the_schemas_of_its_records() -> None:
    holes = {3: manifest(3, ["public.a"], holes=(Hole(SCHEMA, "public.a", "g"),))}
    late = table("public.a", control("public.a", window=2))
    found = decide(facts(late, B, log=log(manifests={**log().manifests, **holes}), stream=NEW))
    assert moves(found)["public.a"] is TableAction.STREAM


@pytest.mark.parametrize("reconcile", Reconcile)
def test_a_table_that_the_stream_does_not_carry_is_blocked_and_not_copied_automatically(reconcile: Reconcile) -> None:
    outside = {"public.a": Problem("SRC008", "public.a is not in the publication", do="add it")}
    definition = replace(DEFINITION, source=replace(DEFINITION.source, reconcile=reconcile))
    stream = replace(NEW, outside=outside)
    holes = {3: manifest(3, ["public.a"], holes=(Hole("untold", "public.a", ""),))}
    late = table("public.a", control("public.a", window=2))
    for log_facts, record in ((log(), A), (log(manifests={**log().manifests, **holes}), late)):
        decision = decide(facts(record, B, log=log_facts, stream=stream, definition=definition))
        assert moves(decision) == {"public.a": TableAction.BLOCKED, "public.b": TableAction.STREAM}
        assert decision.table_decisions[0].problem == outside["public.a"]
    assert moves(decide(facts(table("public.a"), B, stream=stream)))["public.a"] is TableAction.COPY


@pytest.mark.parametrize(
    ("order_key", "move"), [("e", TableAction.STREAM), ("f", TableAction.STREAM), ("", TableAction.BLOCKED)]
)
def test_a_hole_up_to_the_floor_of_the_copy_is_closed_by_it(order_key: str, move: TableAction) -> None:
    """A hole without an order key is closed only by a copy that begins behind its window."""
    holes = {3: manifest(3, ["public.a"], holes=(Hole("overflow", "public.a", order_key),))}
    late = table("public.a", control("public.a", window=2, floor="f"))
    decision = decide(facts(late, B, log=log(manifests={**log().manifests, **holes})))
    assert moves(decision)["public.a"] is move


def test_a_window_that_did_not_capture_the_table_is_a_hole_for_it() -> None:
    missing = replace(log().manifests[3], tables={"public.b": TableSlice("d1")})
    late = table("public.a", control("public.a", window=2))
    decision = decide(facts(late, B, log=log(manifests={**log().manifests, 3: missing})))
    assert moves(decision) == {"public.a": TableAction.BLOCKED, "public.b": TableAction.STREAM}


def test_a_table_whose_windows_are_gone_is_blocked() -> None:
    late = table("public.a", control("public.a", window=1))
    assert moves(decide(facts(late, B, log=log(oldest=3))))["public.a"] is TableAction.BLOCKED
    next_to_it = table("public.a", control("public.a", window=2))
    assert moves(decide(facts(next_to_it, B, log=log(oldest=3))))["public.a"] is TableAction.STREAM


@given(st.sampled_from(Reconcile), st.booleans())
def test_a_lost_position_is_never_passed_over_silently(reconcile: Reconcile, resync: bool) -> None:
    definition = replace(DEFINITION, source=replace(DEFINITION.source, reconcile=reconcile))
    commands = (command(CommandKind.RESYNC, "public.a"),) if resync else ()
    decision = decide(
        facts(A, B, table("public.c"), definition=definition, stream=StreamFacts(lost=LOST), commands=commands)
    )
    assert not decision.plan.extract and decision.idle is None
    copied_again = resync or reconcile is Reconcile.AUTO
    assert decision.reopen == copied_again
    if not copied_again:
        assert set(moves(decision).values()) == {TableAction.BLOCKED}


def test_a_lost_stream_is_not_reopened_while_no_table_is_copied_again() -> None:
    late = table("public.a", control("public.a", window=2))
    decision = decide(facts(late, B, log=log(rows={3: ["public.a"]}), stream=StreamFacts(lost=LOST)))
    assert not decision.reopen
    assert decision.follow == ("stage", "close_window"), "what the log holds is still applied"


def test_verify_waits_for_copies_and_does_not_run_with_the_stream() -> None:
    verify = (command(CommandKind.VERIFY),)
    decision = decide(facts(A, B, stream=NEW, commands=verify))
    assert (decision.follow, decision.plan.mode) == (("verify", "close_window"), Mode.VERIFY)
    assert not decision.plan.extract
    decision = decide(facts(A, table("public.c"), stream=NEW, commands=verify))
    assert decision.follow == ("snapshot", "extract", "close_window")
    assert decision.plan.commands == ()


def test_a_command_about_bad_records_starts_a_run_once_its_table_replicates() -> None:
    for kind in (CommandKind.REPLAY, CommandKind.DISCARD):
        request = command(kind, "a")
        decision = decide(facts(table("a", control("a")), table("b", control("b")), commands=(request,)))
        assert (decision.follow, decision.plan.commands) == (("stage", "close_window"), (request.id,))
        paused = table("a", control("a", state=TableState.PAUSED))
        decision = decide(facts(paused, table("b", control("b")), commands=(request,)))
        assert (decision.follow, decision.plan.commands) == (("close_window",), ())
        decision = decide(facts(table("a", control("a")), commands=(request,), stream_lane=False))
        assert (decision.follow, decision.plan.commands) == (("close_window",), ())


def test_a_backfill_leaves_keyless_tables_out_and_reports_it() -> None:
    keyless = table("public.b", control("public.b"), key=())
    repair = facts(A, keyless, mode=Mode.REPAIR, interval=("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"))
    decision = decide(repair)
    assert (decision.plan.repair, decision.plan.stream) == ((2, 2), ("public.a",))
    assert "public.b has no key" in decision.notes[0]
    assert not decision.wait


def test_a_backfill_waits_for_the_stream_lane_because_no_later_run_does_its_work() -> None:
    interval = ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z")
    beside = facts(A, mode=Mode.REPAIR, interval=interval, stream_lane=False)
    decision = decide(beside)
    assert decision.wait and not (decision.needs_stream_lane or decision.needs_copy_lane)
    assert decision.notes == ("another run has the lease of the stream lane; this run waits for it",)
    nothing_to_do = replace(beside, interval=("2026-02-02T00:00:00Z", "2026-02-03T00:00:00Z"))
    assert not decide(nothing_to_do).wait


def test_a_backfill_reports_the_windows_behind_a_hole_that_are_not_applied_again() -> None:
    interval = ("2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z")
    hole = Hole("expired", "public.a", "")
    holed = {n: manifest(n, (), holes=(hole,) if n == 2 else ()) for n in (1, 2, 3)}
    decision = decide(facts(A, B, mode=Mode.REPAIR, interval=interval, log=log(manifests=holed)))
    assert decision.notes == ("public.a has a hole in window 2: windows up to 2 are not applied again",)


@pytest.mark.parametrize(
    ("start", "oldest", "stops"),
    [("2025-01-01", 1, False), ("2025-01-01", 2, True), ("2026-01-02T12:00", 2, False), ("2026-01-02T11:59", 2, True)],
)
def test_a_backfill_that_needs_cleaned_windows_stops(start: str, oldest: int, stops: bool) -> None:
    record = table("public.a", control("public.a"))
    decision = decide(
        facts(record, mode=Mode.REPAIR, interval=(start, "2026-01-04T00:00:00+00:00"), log=log(oldest=oldest))
    )
    assert (decision.stop is not None) == stops
    if decision.stop:
        assert f"oldest window {oldest}" in decision.stop.found


@given(
    st.integers(0, 50),
    st.lists(st.tuples(st.sampled_from(TableState), st.integers(0, 50), st.none() | st.integers(1, 50)), max_size=6),
)
def test_nothing_that_a_replicating_table_still_needs_is_acknowledged(
    sealed: int, tables: list[tuple[TableState, int, int | None]]
) -> None:
    tables = [(state, min(window, sealed), behind) for state, window, behind in tables]
    window = acknowledgeable(sealed, tables)
    assert window <= sealed
    for state, cursor, behind in tables:
        if state in HOLDS_ACKNOWLEDGEMENT:
            assert window <= effective_window(sealed, cursor, behind)
    if not any(state in HOLDS_ACKNOWLEDGEMENT for state, _, _ in tables):
        assert window == sealed


@pytest.mark.parametrize(("window", "behind", "passed"), [(2, None, 9), (2, 3, 2), (2, 6, 5)])
def test_the_effective_window_of_a_table_is_the_one_before_the_next_with_records_of_it(
    window: int, behind: int | None, passed: int
) -> None:
    assert effective_window(9, window, behind) == passed
    assert acknowledgeable(9, [(TableState.REPLICATING, window, behind)]) == passed


def test_a_decision_is_deterministic_and_is_read_back_from_its_file() -> None:
    known = facts(A, table("public.c"), stream=NEW, commands=(command(CommandKind.RESYNC),))
    decision = decide(known)
    assert decide(known) == decision
    assert from_plain(RunDecision, to_plain(decision)) == decision


def test_a_table_with_a_position_of_its_own_is_not_read_while_it_is_refused() -> None:
    stream = StreamFacts(True, {"public.a": "1", "public.b": "2"})
    assert stream.without({"public.a"}) == StreamFacts(True, {"public.b": "2"})
    assert stream.without({"public.a", "public.b"}) == StreamFacts(False, {})
    assert stream.without(()) == stream
