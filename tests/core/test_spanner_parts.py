"""Merges in parts of any size, interrupted and continued, have the result of one transaction and of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_cdc_provider.core.spec.definition import OnDelete
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import COPY, GONE, KNOWN, LIVE, OP, ORDER, PUT, MergePlan
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.targets.spanner import control, large_merge
from airflow_cdc_provider.targets.spanner import merge as merges
from airflow_cdc_provider.targets.spanner.columns import create_table
from airflow_cdc_provider.targets.spanner.control import ControlRow
from airflow_cdc_provider.targets.spanner.copies import load
from airflow_cdc_provider.targets.spanner.large_merge import begin, end_merge
from airflow_cdc_provider.targets.spanner.options import Json
from airflow_cdc_provider.targets.spanner.parts import PartsOf, save
from airflow_cdc_provider.targets.spanner.rows import Stored
from airflow_cdc_provider.targets.target import TargetState
from tests.core.spanner_memory import MemoryDatabase, MemorySession

ID = Column("id", LogicalType(Kind.INT32), nullable=False)
COLUMNS = (ID, Column("v", LogicalType(Kind.TEXT)), Column("w", LogicalType(Kind.TEXT)))
KEYED, KEYLESS = TableSchema("public.t", COLUMNS, ("id",)), TableSchema("public.t", COLUMNS)
IDS, VALUES = range(6), st.sampled_from(["a", "b", None])
RECORD = ControlRecord(
    "shop", "public.t", "log", "me", "one", 1, 0, "0", State(TableState.REPLICATING, "now"), nonce="n"
)
NEXT = replace(RECORD, window=1, nonce="m", attempt="two")
OLD, NEW = "00000001", "00000002"


@dataclass(frozen=True)
class Merge:
    """``before``: rows by key, or a list without one; deleted ones are marked. ``staged``: dictionaries."""

    plan: MergePlan
    before: list[dict[str, Any]]
    staged: list[dict[str, Any]]


@st.composite
def keyed_merges(draw: st.DrawFn) -> Merge:
    on_delete = draw(st.sampled_from(OnDelete))
    soft, partial, truncated = on_delete is OnDelete.SOFT, draw(st.booleans()), draw(st.booleans())
    truncated = truncated and on_delete is not OnDelete.IGNORE
    before = [
        {"id": key, "v": draw(VALUES), "w": draw(VALUES), ORDER: OLD, "_cdc_deleted": soft and draw(st.booleans())}
        for key in IDS
        if draw(st.booleans())
    ]
    live = {row["id"] for row in before if not row["_cdc_deleted"]}
    staged = []
    for key in IDS:
        if draw(st.booleans()):
            ops = [LIVE, PUT, GONE]
            op = draw(st.sampled_from(ops))
            known = draw(st.sampled_from([None, ["id", "v"], ["id"]])) if partial and op != GONE else None
            if truncated or (op == LIVE and key not in live):
                known = None  # behind a truncate every row is new
            if op == GONE and partial and soft:
                known = draw(st.sampled_from([["id"], ["id", "v"], None]))
            staged.append({"id": key, "v": draw(VALUES), "w": draw(VALUES), ORDER: NEW, OP: op, KNOWN: known})
    plan = MergePlan(KEYED, on_delete, partial, truncated)
    return Merge(plan, before, staged)


@st.composite
def keyless_merges(draw: st.DrawFn) -> Merge:
    rows = st.builds(dict, id=st.sampled_from([1, 2, None]), v=VALUES, w=st.just("w"))
    before = draw(st.lists(rows, max_size=6))
    gone = draw(st.lists(st.sampled_from(before), max_size=3, unique_by=repr)) if before else []
    copies = draw(st.lists(rows, max_size=6))
    truncated = draw(st.booleans())
    staged = [*([] if truncated else [row | {OP: GONE} for row in gone]), *(row | {OP: COPY} for row in copies)]
    return Merge(MergePlan(KEYLESS, OnDelete.HARD, truncated=truncated), before, staged)


def model(merge: Merge) -> list[tuple[Any, ...]]:
    """The rows after the merge; shares no code with the product."""
    plan = merge.plan
    if not plan.schema.key:
        gone = [tuple(row[name] for name in ("id", "v", "w")) for row in merge.staged if row[OP] == GONE]
        kept = [] if plan.truncated else [tuple(row[n] for n in ("id", "v", "w")) for row in merge.before]
        arrived = [tuple(row[n] for n in ("id", "v", "w")) for row in merge.staged if row[OP] == COPY]
        return sorted([*(row for row in kept if row not in gone), *arrived], key=repr)
    rows = {row["id"]: dict(row) for row in merge.before}
    if plan.truncated and plan.soft:
        for row in rows.values():
            row["gone_now"] = True
    elif plan.truncated:
        rows.clear()
    for staged in merge.staged:
        old = rows.get(staged["id"])
        known = staged[KNOWN] if staged[KNOWN] is not None else ["id", "v", "w"]
        if staged[OP] == GONE:
            if plan.on_delete is OnDelete.HARD:
                rows.pop(staged["id"], None)
            elif plan.on_delete is OnDelete.SOFT and old:
                values = {name: staged[name] for name in known} if plan.partial else {}
                rows[staged["id"]] = old | values | {"_cdc_deleted": True, "gone_now": False, ORDER: NEW}
            continue
        kept = old if old and not old["_cdc_deleted"] else {"v": None, "w": None}
        values = {name: staged[name] for name in known}
        rows[staged["id"]] = kept | values | {"id": staged["id"], ORDER: NEW, "_cdc_deleted": False, "gone_now": False}
    found = []
    for row in rows.values():
        deleted = bool(row["_cdc_deleted"] or row.get("gone_now"))
        found.append((row["id"], row["v"], row["w"], row[ORDER], deleted))
    return sorted(found)


class Killed(Exception):
    pass


@contextmanager
def killed_at(point: int | None) -> Iterator[None]:
    """The process dies at the failpoint that it passes as this one."""
    passed = iter(range(10_000))

    def failpoint(name: str) -> None:
        if next(passed) == point:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_merge, "failpoint", failpoint)
        yield


def filled(merge: Merge, soft: bool) -> tuple[MemorySession, Stored, TargetState]:
    session = MemorySession()
    schema = merge.plan.schema
    session.database.change_schema([create_table("t", schema, soft, Json.TEXT, "0" * 32)])
    stored = Stored("t", schema, soft, Json.TEXT)
    if merge.before:
        load(session, stored, 0, as_table(merge.before).to_batches(), 1_000)  # type: ignore[arg-type]
    record = replace(RECORD, rows=len(merge.before))
    session.write([control.write("t", ControlRow("0" * 32, record))])
    return session, stored, TargetState(True, record, None, "0" * 32, record.token)


def as_table(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {"id": pa.int32(), "_cdc_deleted": pa.bool_(), KNOWN: pa.list_(pa.string())}
    names = list(rows[0])
    return pa.table({n: pa.array([row[n] for row in rows], kinds.get(n, pa.string())) for n in names})


def staged_table(merge: Merge) -> pa.Table:
    if merge.staged:
        return as_table(merge.staged)
    names = ["id", "v", "w", *([ORDER] if merge.plan.schema.key else []), OP, *([KNOWN] if merge.plan.partial else [])]
    kinds = {"id": pa.int32(), KNOWN: pa.list_(pa.string())}
    return pa.schema([(name, kinds.get(name, pa.string())) for name in names]).empty_table()


def result(session: MemorySession, merge: Merge) -> list[tuple[Any, ...]]:
    columns = ["id", "v", "w"]
    if merge.plan.schema.key:
        columns += ["cdc_order", *(["cdc_deleted"] if merge.plan.soft else [])]
    rows = session.all_rows("t", columns)
    rows = [(None if row[0] is None else int(row[0]), *row[1:]) for row in rows]
    if merge.plan.schema.key and not merge.plan.soft:
        rows = [(*row, False) for row in rows]
    return sorted(rows, key=repr) if not merge.plan.schema.key else sorted(rows)


def merge_in_parts(merge: Merge, most: int, kills: list[int]) -> MemorySession:
    session, stored, expected = filled(merge, merge.plan.soft)
    database = MemoryDatabase.of(session, max_mutations=most)
    table = staged_table(merge)
    parts = PartsOf("t", NEXT.nonce)
    saved = save(session, parts, stored, merge.plan, "task", [table], most)  # type: ignore[arg-type]
    assert not saved.refused
    row = ControlRow(expected.identity, expected.control)
    session.transact(lambda t: begin(t, row, "t", saved, merge.plan, NEXT))  # type: ignore[arg-type]
    for point in kills:
        try:
            with killed_at(point):
                end_merge(database, session, "t")  # type: ignore[arg-type]
        except Killed:
            continue
    end_merge(database, session, "t")  # type: ignore[arg-type]
    return session


def merge_at_once(merge: Merge) -> MemorySession:
    session, stored, expected = filled(merge, merge.plan.soft)
    target = AtOnce(MemoryDatabase.of(session))
    merges.merge_at_once(target, session, stored, staged_table(merge), merge.plan, expected, NEXT)  # type: ignore[arg-type]
    return session


class AtOnce:
    """The part of the target that a merge in one transaction uses."""

    def __init__(self, database: MemoryDatabase) -> None:
        from airflow_cdc_provider.targets.spanner.target import SpannerTarget

        self.database = database
        self.commit = SpannerTarget.commit.__get__(self)

    def locate(self, table: str) -> str:
        return table


@given(st.one_of(keyed_merges(), keyless_merges()), st.integers(26, 60), st.lists(st.integers(0, 6), max_size=4))
def test_parts_of_any_size_that_are_interrupted_have_the_result_of_one_transaction(
    merge: Merge, most: int, kills: list[int]
) -> None:
    wanted = model(merge)
    once, parts = merge_at_once(merge), merge_in_parts(merge, most, kills)
    assert result(once, merge) == wanted
    assert result(parts, merge) == wanted
    for session in (once, parts):
        row = control.read(session.read, "t")
        assert row.begun is None and row.record is not None and row.record.window == 1
        assert row.record.rows == len(wanted)
        assert session.all_rows("cdc_parts", ["nonce"]) == []
