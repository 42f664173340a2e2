"""The Spanner target without Spark: copies that die half-way, fences, published cuts, and what check reports."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.api_core.exceptions import PermissionDenied
from google.cloud import spanner

from airflow_cdc_provider.core.connections.google import google_account
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import Blocked, Fenced, TargetUnavailable
from airflow_cdc_provider.core.spec.definition import OnDelete, TableRule, Target
from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.core.table.merge_plan import LIVE, OP, ORDER, MergePlan
from airflow_cdc_provider.core.table.published_cut import Cut, CutTable
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.core.table.states import State, TableState
from airflow_cdc_provider.sandbox.spanner import INSTANCE, EmbeddedSpanner
from airflow_cdc_provider.sandbox.spanner.faults import Fault
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.local_store import LocalStore
from airflow_cdc_provider.targets.spanner import swap
from airflow_cdc_provider.targets.spanner.catalog import TABLES
from airflow_cdc_provider.targets.spanner.copies import commit_copy, load, prepare
from airflow_cdc_provider.targets.spanner.database import SpannerDatabase
from airflow_cdc_provider.targets.spanner.large_merge import apply_parts
from airflow_cdc_provider.targets.spanner.merge import begin_in_parts
from airflow_cdc_provider.targets.spanner.names import CONTROL, CUT, PARTS
from airflow_cdc_provider.targets.spanner.options import Json
from airflow_cdc_provider.targets.spanner.parts import PartsOf, save, unapplied
from airflow_cdc_provider.targets.spanner.rows import Stored
from airflow_cdc_provider.targets.spanner.target import SpannerTarget
from tests.spanner_client import open_database

pytestmark = pytest.mark.server

SCHEMA = TableSchema(
    "public.t", (Column("id", LogicalType(Kind.INT32), nullable=False), Column("v", LogicalType(Kind.TEXT))), ("id",)
)
KEYLESS = replace(SCHEMA, key=())
ALL = spanner.KeySet(all_=True)


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedSpanner]:
    with EmbeddedSpanner() as server:
        yield server


def as_table(*rows: tuple[int, str], schema: TableSchema) -> pa.Table:
    ids, values = zip(*rows, strict=True)
    orders = {ORDER: ["0"] * len(rows)} if schema.key else {}
    return pa.table({"id": pa.array(ids, pa.int32()), "v": values} | orders)


class World:
    """A target, its database as Google's client sees it, and copies of the table ``t``."""

    def __init__(self, server: EmbeddedSpanner, folder: Path) -> None:
        server.arm(Fault.NONE)
        name = f"d{uuid.uuid4().hex[:20]}"
        self.server = server
        self.client = open_database(server.port, name)
        options = {"instance": INSTANCE, "database": name}
        log = ChangeLog(LocalStore(str(folder)))
        self.target = SpannerTarget(Target("spanner", options=options), server.connection, "shop", log)
        self.fence = 0

    def record(self, table: str = "public.t") -> ControlRecord:
        self.fence += 1
        state = State(TableState.REPLICATING, "now")
        return ControlRecord(
            "shop",
            table,
            "log",
            "me",
            uuid.uuid4().hex,
            self.fence,
            0,
            "0",
            state,
            schema=SCHEMA,
            nonce=uuid.uuid4().hex,
        )

    def loaded(
        self, *rows: tuple[int, str], name: str = "t", schema: TableSchema = SCHEMA
    ) -> tuple[Stored, ControlRecord]:
        record = self.record()
        shadow = prepare(self.target.database, name, schema, False, self.target.state("public.t", name), record)
        table = as_table(*rows, schema=schema)
        with self.target.database.session("load") as session:
            assert load(session, shadow, 0, table.to_batches(), 1_000) == len(rows)
        return shadow, replace(record, rows=len(rows))

    def copy(self, *rows: tuple[int, str], name: str = "t") -> ControlRecord:
        shadow, record = self.loaded(*rows, name=name)
        self.commit(shadow, record, name)
        assert self.control(name) == record
        return record

    def commit(self, shadow: Stored, record: ControlRecord, name: str = "t") -> None:
        commit_copy(self.target.database, name, shadow.table, record)

    def control(self, name: str = "t") -> ControlRecord | None:
        return self.target.state("public.t", name).control

    def rows(self, name: str = "t", **when: Any) -> list[tuple[Any, ...]]:
        with self.client.snapshot(**when) as snapshot:
            return [tuple(row) for row in snapshot.read(name, ["id", "v"], ALL)]

    def ddl(self, *statements: str) -> None:
        self.client.update_ddl(list(statements)).result()

    def tables(self) -> set[str]:
        """Besides our own."""
        parameters = {"marker": "", "table": "", "control": "", "prefix": ""}
        with self.client.snapshot() as snapshot:
            found = list(
                snapshot.execute_sql(TABLES, parameters, dict.fromkeys(parameters, spanner.param_types.STRING))
            )
        return {name for name, *_ in found} - {CONTROL, PARTS, CUT}

    def task(self, schema: TableSchema = SCHEMA, target: str = "t", **rule: Any) -> TableTask:
        return TableTask("public.t", target, schema, TableRule("public.t", **rule), "", TableState.PENDING)


@pytest.fixture
def world(server: EmbeddedSpanner, tmp_path: Path) -> Iterator[World]:
    world = World(server, tmp_path)
    yield world
    world.client.drop()


class Died(Exception):
    pass


@contextmanager
def dies(point: str) -> Iterator[None]:
    def failpoint(name: str) -> None:
        if name == point:
            raise Died

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swap, "failpoint", failpoint)
        with pytest.raises(Died):
            yield


def test_a_copy_that_dies_before_its_rename_gets_its_name_by_the_next_reader_of_the_state(world: World) -> None:
    world.copy((1, "old"))
    shadow, record = world.loaded((2, "new"))
    world.commit(shadow, record)
    assert world.rows() == [(1, "old")], "readers still see the old copy"
    with dies("copy.in_swap"):
        world.control()
    assert world.control() == record and world.rows() == [(2, "new")]
    assert world.tables() == {"t"}, "the old copy is dropped"


def test_a_rename_that_comes_late_changes_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process stops before its rename, another one renames and commits, the first one continues."""
    world.copy((1, "old"))
    shadow, record = world.loaded((2, "new"))
    world.commit(shadow, record)
    fenced = []

    def others(name: str) -> None:
        monkeypatch.undo()
        current = world.target.state("public.t", "t")
        fenced.append(world.target.fence("t", current, record.fenced()))

    monkeypatch.setattr(swap, "failpoint", others)
    assert world.control() == fenced[0]
    assert world.rows() == [(2, "new")] and world.tables() == {"t"}


def test_of_two_copies_that_are_loaded_at_once_the_later_one_wins(world: World) -> None:
    world.copy((1, "old"))
    first = world.loaded((2, "first"))
    second = world.loaded((3, "second"))
    with pytest.raises((Fenced, TargetUnavailable)):
        world.commit(*first)
    world.commit(*second)
    assert world.control() == second[1] and world.rows() == [(3, "second")]


def test_a_commit_during_a_copy_prevents_the_commit_of_the_copy(world: World) -> None:
    before = world.copy((1, "old"))
    loaded = world.loaded((2, "new"))
    world.fence += 10
    raised = world.target.fence("t", world.target.state("public.t", "t"), replace(before.fenced(), fence=world.fence))
    with pytest.raises(Fenced):
        world.commit(*loaded)
    assert world.control() == raised and world.rows() == [(1, "old")]


def test_a_merge_in_parts_that_has_begun_prevents_other_commits_until_it_has_ended(world: World) -> None:
    record = world.copy((1, "a"))
    before = world.target.state("public.t", "t")
    stored, plan = Stored("t", SCHEMA, False, Json.TEXT), MergePlan(SCHEMA, OnDelete.HARD)
    staged = as_table((1, "b"), (2, "c"), schema=SCHEMA).set_column(2, ORDER, pa.array(["1", "1"]))
    staged = staged.append_column(OP, pa.array([LIVE, LIVE]))
    merged = replace(record, window=1, attempt="m", nonce=uuid.uuid4().hex)
    parts = PartsOf("t", merged.nonce)
    with world.target.database.session("merge") as session:
        others = PartsOf("t", "dead"), PartsOf("t", "~dead")
        for other in others:
            save(session, other, stored, plan, "task", [staged], 24)
        saved = save(session, parts, stored, plan, "task", [staged], 24)
        assert len(saved.parts) == 2
        begin_in_parts(world.target, session, stored, saved, plan, before, merged)
        apply_parts(world.target.database, parts, saved.parts[:1])
        assert [unapplied(session.read, one, "task") for one in others] == [[], []], (
            "parts of dead attempts are removed"
        )
    with pytest.raises(Fenced):
        world.target.fence("t", before, record.fenced())
    assert world.rows() == [(1, "b")]
    world.target.publish_cut(Cut("shop", 0, "now", (CutTable("t", record.window, record.nonce),)))
    assert published(world) == [], "no cut of a part of a batch"
    assert world.control() == replace(merged, rows=2) and world.rows() == [(1, "b"), (2, "c")]


@pytest.mark.parametrize("fault", [Fault.ANSWER, Fault.REQUEST, Fault.ABORT])
def test_a_commit_whose_message_is_lost_is_done_once(world: World, fault: Fault) -> None:
    before = world.copy((1, "a"))
    world.server.arm(fault)
    current = world.target.state("public.t", "t")
    raised = world.target.fence("t", current, before.fenced())
    assert world.control() == raised
    shadow, record = world.loaded((2, "b"))
    world.server.arm(fault)
    world.commit(shadow, record)
    assert world.control() == record and world.rows() == [(2, "b")]


def test_two_rows_with_one_key_are_refused(world: World) -> None:
    shadow, record = world.loaded((1, "a"), (1, "b"))
    with pytest.raises(Blocked, match="TGT063"):
        world.commit(shadow, record)
    assert not world.target.state("public.t", "t").exists


def test_a_part_of_a_copy_that_is_loaded_twice_is_there_once(world: World) -> None:
    for schema in (SCHEMA, KEYLESS):
        shadow, record = world.loaded((1, "a"), (2, "a"), schema=schema)
        table = as_table((1, "a"), (2, "a"), schema=schema)
        with world.target.database.session("load") as session:
            load(session, shadow, 0, table.to_batches(), 1_000)
        world.commit(shadow, record)
        assert world.control() == record and len(world.rows()) == 2


def test_privileges_follow_the_name_and_indexes_do_not_prevent_a_new_copy(world: World) -> None:
    world.copy((1, "old"))
    world.ddl("CREATE ROLE analyst", "GRANT SELECT ON TABLE t TO ROLE analyst", "CREATE INDEX by_v ON t (v)")
    world.copy((2, "new"))
    assert world.rows() == [(2, "new")] and world.tables() == {"t"}
    query = (
        "SELECT privilege_type, grantee FROM information_schema.table_privileges"
        " WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table)"
    )
    with world.client.snapshot() as snapshot:
        found = list(snapshot.execute_sql(query, {"table": "t"}, {"table": spanner.param_types.STRING}))
    assert found == [["SELECT", "analyst"]]


def test_a_view_on_the_table_delays_the_rename_until_it_is_dropped(world: World) -> None:
    world.copy((1, "old"))
    world.ddl("CREATE VIEW w SQL SECURITY INVOKER AS SELECT t.id FROM t")
    shadow, record = world.loaded((2, "new"))
    world.commit(shadow, record)
    with pytest.raises(TargetUnavailable, match="TGT085"):
        world.control()
    assert world.rows() == [(1, "old")]
    world.ddl("DROP VIEW w")
    assert world.control() == record and world.rows() == [(2, "new")]


def test_a_table_of_another_origin_is_neither_renamed_nor_dropped(world: World) -> None:
    world.copy((1, "old"))
    shadow, record = world.loaded((2, "new"))
    world.commit(shadow, record)
    world.ddl("DROP TABLE t", "CREATE TABLE t (id INT64, v STRING(MAX)) PRIMARY KEY (id)")
    state = world.target.state("public.t", "t")
    assert (state.exists, state.control) == (True, None)
    world.ddl("DROP TABLE t")
    assert world.control() == record and world.rows() == [(2, "new")]


def test_a_cut_is_published_if_every_table_is_where_it_says_and_is_read_as_of_its_time(world: World) -> None:
    one, other = world.copy((1, "a")), world.copy((2, "b"), name="o")
    tables = (CutTable("t", one.window, one.nonce), CutTable("o", other.window, other.nonce))
    world.target.publish_cut(Cut("shop", 7, "now", (replace(tables[0], window=5), tables[1])))
    assert published(world) == [], "a table is not at this window"
    world.target.publish_cut(Cut("shop", 7, "now", tables))
    ((window, at, names),) = published(world)
    assert (window, names) == (7, ["t", "o"])
    with world.client.batch() as batch:
        batch.insert("t", ["id", "v", "cdc_order"], [[3, "later", "1"]])
    assert world.rows(read_timestamp=at) == [(1, "a")]
    world.target.publish_cut(Cut("shop", 6, "now", tables))
    assert [row[0] for row in published(world)] == [7], "an older cut is not published"
    world.copy((9, "new"), name="o")
    assert published(world) == [], "a new copy withdraws the cut"


def published(world: World) -> list[list[Any]]:
    with world.client.snapshot() as snapshot:
        return list(snapshot.read("cdc_cut", ["cut_window", "read_at", "tables"], ALL))


def test_check_finds_nothing_wrong_with_a_table_of_ours_and_no_table(world: World) -> None:
    assert world.target.check([world.task()]) == []
    world.copy((1, "a"))
    assert world.target.check([world.task()]) == []
    assert world.tables() == {"t"}, "the table of the check is dropped"


def columns(*names: str, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema("public.t", tuple(Column(name, LogicalType(Kind.INT32)) for name in names), key)


MANY = tuple(f"c{number}" for number in range(17))


@pytest.mark.parametrize(
    ("task", "code"),
    [
        (lambda world: world.task(target="_t"), "TGT056"),
        (lambda world: world.task(columns("id", "a b", "a_b")), "TGT057"),
        (lambda world: world.task(columns("id", "cdc_order")), "TGT057"),
        (lambda world: world.task(columns("id", "x" * 129)), "TGT054"),
        (
            lambda world: world.task(columns(*(f"c{n}" for n in range(17)), key=tuple(f"c{n}" for n in range(17)))),
            "TGT058",
        ),
        (lambda world: world.task(cluster_by=("id",)), "TGT055"),
        (lambda world: world.task(KEYLESS, on_delete=OnDelete.SOFT), "TGT016"),
    ],
)
def test_check_reports_what_spanner_does_not_have(world: World, task: Callable[[World], TableTask], code: str) -> None:
    assert [problem.code for problem in world.target.check([task(world)])] == [code]


def test_check_reports_a_table_of_another_origin_and_a_missing_database(world: World) -> None:
    world.ddl("CREATE TABLE t (id INT64) PRIMARY KEY (id)")
    assert [problem.code for problem in world.target.check([world.task()])] == ["TGT012"]
    options = {"instance": INSTANCE, "database": "none"}
    missing = SpannerTarget(Target("spanner", options=options), world.server.connection, "shop", world.target.log)
    found = missing.check([world.task()])
    assert [problem.code for problem in found] == ["TGT067", "TGT052"]
    assert found[1].do == "gcloud spanner databases create none --instance=copies"


def test_check_reports_a_missing_right_with_the_command_that_grants_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionDenied("spanner.databases.updateDdl")  # type: ignore[no-untyped-call]

    monkeypatch.setattr(SpannerDatabase, "change_schema", refused)
    found = world.target.check([world.task()])
    assert [problem.code for problem in found] == ["TGT062", "TGT059"]
    name, member = world.target.database.options.database, google_account(world.server.connection)
    assert found[1].do == (
        f"gcloud spanner databases add-iam-policy-binding {name} --instance={INSTANCE} --member={member}"
        " --role=roles/spanner.databaseUser"
    )


def test_check_reports_another_dialect(world: World) -> None:
    world.ddl("ALTER DATABASE d SET OPTIONS (database_dialect = 'POSTGRESQL')")
    assert [problem.code for problem in world.target.check([world.task()])] == ["TGT088"]
