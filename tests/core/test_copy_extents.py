"""Which tables a run copies, and which rows: modes and conditions of `snapshot`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.core.decisions.facts import StreamFacts, TableFacts
from airflow_cdc_provider.core.decisions.run_decision import decide
from airflow_cdc_provider.core.decisions.table_decisions import TableAction, TableDecision
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.log.change_log import Hole
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Columns, Comparison, Condition, Reconcile, TableRule
from airflow_cdc_provider.core.spec.selection import select
from airflow_cdc_provider.core.spec.snapshot import Snapshot, SnapshotDefaults, SnapshotMode
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.copy_extent import CopyExtent, extent_after
from airflow_cdc_provider.core.table.identity import UnloggedChanges
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, Origin, TableSchema
from tests.core import test_decide as decided
from tests.core import test_selection as selected
from tests.core.test_decide import DEFINITION, LOST, SOURCE, control, facts, log, manifest

M = SnapshotMode
WITHOUT_ROWS = (M.SCHEMA_ONLY, M.NEVER)
RECENT = Condition("id", Comparison.GREATER_OR_EQUAL, 7)
OWN = replace(DEFINITION, source=replace(DEFINITION.source, reconcile=Reconcile.AUTO))


def table(mode: SnapshotMode, record: ControlRecord | None = None, **more: object) -> TableFacts:
    made = decided.table("public.a", record, **more)  # type: ignore[arg-type]
    rule = replace(made.task.rule, snapshot=Snapshot(mode))
    return replace(made, task=replace(made.task, rule=rule))


def decision(one: TableFacts, **changes: object) -> TableDecision:
    return decide(facts(one, decided.B, **changes)).table_decisions[0]


def with_hole() -> dict[str, object]:
    manifests = {3: manifest(3, (), holes=(Hole("expired", "public.a", "g"),))}
    return {"log": log(manifests=manifests)}


BEHIND = control("public.a", window=2)


def test_a_table_has_the_settings_of_the_replicator_for_absent_keys() -> None:
    defaults = SnapshotDefaults(M.WHEN_NEEDED)
    definition = replace(selected.definition(TableRule("public.*")), snapshot=defaults)
    chosen, _ = select(definition, [selected.table("public.a")], selected.folded)
    assert chosen[0].rule.snapshot.mode is M.WHEN_NEEDED
    assert Snapshot(M.INITIAL).over(defaults).mode is M.INITIAL


@pytest.mark.parametrize("mode", [M.INITIAL, *WITHOUT_ROWS])
def test_a_hole_blocks_a_table_with_a_remedy_that_fits_its_mode(mode: SnapshotMode) -> None:
    found = decision(table(mode, BEHIND), **with_hole())
    assert found.action is TableAction.BLOCKED and found.problem is not None and found.problem.code == "LOG004"
    assert ("mode: initial" in found.problem.do) is (mode in WITHOUT_ROWS)
    assert "airflow cdc resync shop --table public.a" in found.problem.do


def test_only_a_copy_with_rows_repairs_a_hole_without_an_operator() -> None:
    actions = {mode: decision(table(mode, BEHIND), definition=OWN, **with_hole()).action for mode in M}
    assert actions == dict.fromkeys(M, TableAction.RECONCILE) | dict.fromkeys(WITHOUT_ROWS, TableAction.BLOCKED)


@pytest.mark.parametrize("case", ["hole", "lost position", "old log", "missing target", "rewritten outside the stream"])
def test_when_needed_copies_again_where_changes_cannot_be_continued(case: str) -> None:
    record: ControlRecord | None = BEHIND if case == "hole" else control("public.a")
    more: dict[str, object] = {}
    changes: dict[str, object] = with_hole() if case == "hole" else {}
    if case == "lost position":
        changes = {"stream": StreamFacts(lost=LOST)}
    if case == "old log":
        record, changes = control("public.a", window=1), {"log": log(oldest=3)}
    if case == "missing target":
        record, more = None, {"known": True}
    if case == "rewritten outside the stream":
        more = {"unlogged": UnloggedChanges(rows=("added to the publication again",))}
    expected = TableAction.COPY if case == "missing target" else TableAction.RECONCILE
    assert decision(table(M.WHEN_NEEDED, record, **more), **changes).action is expected
    assert decision(table(M.INITIAL, record, **more), **changes).action is TableAction.BLOCKED


@pytest.mark.parametrize("change", [{"owner": "o2"}, {"source_identity": {**SOURCE, "system": "8"}}])
def test_when_needed_does_not_follow_another_owner_or_source(change: dict[str, object]) -> None:
    assert decision(table(M.WHEN_NEEDED, control("public.a")), **change).action is TableAction.BLOCKED


def test_another_log_is_no_reason_for_a_copy() -> None:
    assert decision(table(M.WHEN_NEEDED, control("public.a", log_id="l2"))).action is TableAction.BLOCKED


def test_a_table_that_starts_without_rows_is_created_and_says_so() -> None:
    found = decision(table(M.SCHEMA_ONLY))
    assert (found.action, found.reason) == (
        TableAction.COPY,
        "the target has no copy yet; the table starts without rows",
    )


def test_a_control_record_keeps_what_its_copy_has_read() -> None:
    record = control("public.a", extent=CopyExtent(True, (RECENT,)))
    assert from_plain(ControlRecord, to_plain(record)) == record
    older = {name: value for name, value in to_plain(record).items() if name != "extent"}
    assert from_plain(ControlRecord, older).extent.is_whole


def test_an_extent_follows_a_renamed_column_and_ends_with_a_dropped_one() -> None:
    integer, text = LogicalType(Kind.INT32), LogicalType(Kind.TEXT)
    key, note = Column("id", integer, id="1"), Column("n", text, id="2", origin=Origin("note", text))
    schema = TableSchema("public.a", (key, note), ("id",))
    extent = CopyExtent(True, (RECENT, Condition("note", Comparison.EQUAL, "7")))
    assert extent_after(extent, schema, schema) == extent
    renamed = replace(schema, columns=(key, Column("remark", text, id="2"), Column("note", text, id="3")))
    assert [one.column for one in extent_after(extent, schema, renamed).where] == ["id", "remark"]
    without = replace(schema, columns=(key, Column("note", text, id="3")))
    assert extent_after(extent, schema, without) == CopyExtent(rows=False)
    assert extent_after(CopyExtent(), schema, without).is_whole


def test_only_the_mode_never_takes_an_existing_table_over() -> None:
    for mode in M:
        found = decision(table(mode, exists=True))
        assert found.action is (TableAction.COPY if mode is M.NEVER else TableAction.BLOCKED)
        assert decision(table(mode, exists=True, known=True)).action is TableAction.BLOCKED


def problems(rule: TableRule, *columns: str, key: tuple[str, ...] = ("id",)) -> list[Problem]:
    found = selected.run([rule], [selected.table("public.a", *(columns or ("id", "note")), key=key)])[1]
    return list(found)


def test_conditions_name_columns_that_are_copied_unchanged() -> None:
    unknown = Snapshot(where=(Condition("ids", Comparison.EQUAL, "7"),))
    (problem,) = problems(TableRule("public.a", snapshot=unknown))
    assert (problem.code, problem.found, problem.do) == ("DEF042", "ids", "did you mean 'id'?")
    where = Snapshot(where=(Condition("note", Comparison.EQUAL, "7"),))
    omitted = problems(TableRule("public.a", columns=Columns(exclude=("note",)), snapshot=where))
    assert [problem.code for problem in omitted] == ["DEF021"]
    for columns in (Columns(mask={"note": 1}), Columns(cast={"note": "text"})):
        changed = problems(TableRule("public.a", columns=columns, snapshot=where))
        assert [problem.code for problem in changed] == ["DEF092"]
    assert not problems(TableRule("public.a", columns=Columns(rename={"note": "n"}), snapshot=where))


@pytest.mark.parametrize("snapshot", [Snapshot(M.SCHEMA_ONLY), Snapshot(where=(RECENT,))])
def test_a_table_without_a_key_is_copied_as_a_whole(snapshot: Snapshot) -> None:
    (problem,) = problems(TableRule("public.a", snapshot=snapshot), key=())
    assert problem.code == "DEF091"
    assert not problems(TableRule("public.a", key=("id",), snapshot=snapshot), key=())
