"""The change log of a table is read by the needs of all its copies: what was decided about one has no effect on it."""

from __future__ import annotations

from dataclasses import replace

from airflow_cdc_provider.connectors.copied.reading import source_tasks
from airflow_cdc_provider.core.decisions.holes import hole_of, waits_for_repair
from airflow_cdc_provider.core.decisions.steps import LoggedTable, TableTask
from airflow_cdc_provider.core.log.change_log import AUDIT, UNLOGGED, Hole, Manifest, TableSlice
from airflow_cdc_provider.core.spec.definition import Columns, TableRule
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState

TEXT = LogicalType(Kind.TEXT)
ID, A, C = (Column(name, TEXT) for name in ("id", "a", "c"))
WHOLE = TableSchema("d.t", (ID, A, C), ("id",))
SMALL = TableSchema("d.t", (ID, A), ("id",))
RULE = TableRule("d.t")
R, P = TableState.REPLICATING, TableState.PENDING


def copy(name: str, copied: TableSchema | None, *, ignored: bool = False, state: TableState = R) -> TableTask:
    """``ignored``: an operator has decided not to copy ``c``."""
    control = None
    if copied:
        control = ControlRecord("r", name, "log", "me", "a", 1, 7, "0001", State(state, ""), schema=copied)
        control = replace(control, ignored={"c": ""} if ignored else {})
    if not ignored:
        return TableTask(name, "t", WHOLE, RULE, "", state, control)
    rule = replace(RULE, columns=Columns(exclude=("c",)))
    return TableTask(name, "t", SMALL, rule, "", state, control, ignored=("c",), logged=LoggedTable(WHOLE, RULE))


def test_the_log_has_the_columns_that_one_copy_leaves_out() -> None:
    for tasks in ([copy("d.t", SMALL, ignored=True), copy("d.t@wh", WHOLE)], [copy("d.t", SMALL, ignored=True)]):
        (read,) = source_tasks(tasks)
        assert (read.table, read.schema, read.rule, read.ignored) == ("d.t", WHOLE, RULE, ())


def test_a_copy_lacks_no_column_that_it_leaves_out() -> None:
    (read,) = source_tasks([copy("d.t", SMALL, ignored=True), copy("d.t@wh", SMALL), copy("d.t@new", None, state=P)])
    assert {view.copy: view.lacks("c") for view in read.views} == {"d.t": False, "d.t@wh": True, "d.t@new": False}
    assert [view.copy for view in read.views if view.uncopied] == ["d.t@new"]
    assert read.state is R, "it takes changes if one of its copies does"


def test_what_a_table_was_is_known_from_the_copy_that_has_followed_it_furthest() -> None:
    """A paused copy of a table that was made anew has the former one."""
    paused, failing = copy("d.t", SMALL, state=TableState.PAUSED), copy("d.t@a", WHOLE, state=TableState.FAILING)
    assert failing.control
    ahead = replace(copy("d.t@later", SMALL), control=replace(failing.control, table="d.t@later", window=9))
    for tasks, expected in (([paused, failing], "d.t@a"), ([paused, failing, ahead], "d.t@later")):
        (read,) = source_tasks(tasks)
        assert read.control and read.control.table == expected


def test_the_views_of_a_merged_task_are_kept() -> None:
    merged = source_tasks([copy("d.t", SMALL), copy("d.t@wh", WHOLE)])
    assert source_tasks(merged) == merged


def test_a_hole_of_some_copies_stops_no_other_one() -> None:
    holes = (Hole(UNLOGGED, "d.t", "0005", copies=("d.t@wh",)),)
    manifest = Manifest("log", 8, 1, {}, {}, "", "a", "", {"d.t": TableSlice("")}, holes=holes)
    assert hole_of(manifest, "d.t", "0001") is None
    assert hole_of(manifest, "d.t@wh", "0001") is holes[0]
    assert hole_of(manifest, "d.t@wh", "0005") is None, "the copy repaired it"
    of_one, of_other = (copy(name, WHOLE).control for name in ("d.t@wh", "d.t"))
    assert of_one and of_other and waits_for_repair(manifest, of_one)
    assert not waits_for_repair(manifest, of_other), "it has no hole"
    assert not waits_for_repair(manifest, replace(of_one, floor="0005")), "the copy repaired it"
    assert not waits_for_repair(manifest, replace(of_one, window=8)), "another copy has passed it"
    other = replace(manifest, tables={"d.t": TableSlice("", log_sha256="other settings")})
    assert hole_of(other, "d.t", "0001", "settings") and not hole_of(other, "d.t", "0001", "other settings")
    assert not hole_of(other, "d.t", "0001") and not hole_of(manifest, "d.t", "0001", "settings"), "unknown settings"
    audited = replace(other, holes=(Hole(AUDIT, "d.t", ""),))
    found = hole_of(audited, "d.t", "0001", "settings")
    assert found and found.kind == "other settings", "a key audit does not repair it"
    everyone = replace(manifest, holes=(replace(holes[0], copies=()),))
    assert all(hole_of(everyone, name, "0001") for name in ("d.t", "d.t@wh", "d.t:history"))
