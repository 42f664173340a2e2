"""The entries of replicators in the state store, and what is recorded in them before a change has an effect."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from airflow_cdc_provider.control.replicator_changes import (
    begin,
    begin_rename,
    record,
    recreate,
    register,
    require_unchanged,
)
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.replicator_changes import ChangeKind, OwnedTable, ReplicatorEntry
from airflow_cdc_provider.core.errors import Blocked, CommandRefused, Fenced
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.state import tables
from airflow_cdc_provider.state.store import StateStore

SHOP = Definition(
    name="shop",
    source=Source("postgres", "shop_db", options={"publication": "cdc"}),
    target=Target("delta", "/lake"),
    tables=(TableRule("public.*", key=("id",)),),
    staging=Staging("/staging", retain=timedelta(hours=3)),
)


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    return StateStore(f"sqlite:///{tmp_path}/state.db")


def entry_of(store: StateStore) -> ReplicatorEntry:
    entry = store.replicators.get("shop")
    assert entry is not None
    return entry


def test_a_run_registers_its_definition_and_a_later_one_replaces_it(store: StateStore) -> None:
    register(store, SHOP)
    first = entry_of(store)
    assert first.definition == SHOP
    register(store, replace(SHOP, schedule="@daily"))
    assert entry_of(store) == replace(first, definition=replace(SHOP, schedule="@daily"))
    assert store.replicators.all() == {"shop": entry_of(store)}


def test_a_change_is_kept_as_it_was_begun(store: StateStore) -> None:
    register(store, SHOP)
    first = begin(store, SHOP, ChangeKind.DELETE, "ann", drop_copies=True)
    second = begin(store, SHOP, ChangeKind.DELETE, "bob", drop_copies=True)
    assert second == replace(first, holder=second.holder)
    with pytest.raises(Fenced, match="CMD034"):
        record(store, "shop", first, copied=True)
    assert record(store, "shop", second, copied=True) == entry_of(store).change
    with pytest.raises(CommandRefused, match=r"CMD024.*airflow cdc delete shop --drop-copies"):
        begin(store, SHOP, ChangeKind.RENAME, "ann", former="shop", name="mall")
    owned = replace(second, owned=(OwnedTable("public.a", "a", "1"),))
    store.replicators.change("shop", lambda entry: entry and replace(entry, change=owned))
    assert entry_of(store).change == owned
    for refused in (register, require_unchanged):
        with pytest.raises(Blocked, match="CMD022"):
            refused(store, SHOP)


def test_of_many_processes_one_begins_a_change(store: StateStore) -> None:
    store.owner()

    def delete(number: int) -> str:
        return begin(store, SHOP, ChangeKind.DELETE, f"user {number}", drop_copies=False).id

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(delete, range(8)))) == 1


def test_a_change_that_raises_leaves_the_entry(store: StateStore) -> None:
    register(store, SHOP)
    before = entry_of(store)

    def broken(entry: ReplicatorEntry | None) -> ReplicatorEntry | None:
        raise CommandRefused.of("CMD024", "refused")

    with pytest.raises(CommandRefused):
        store.replicators.change_two("shop", "mall", lambda _: None, broken)
    assert entry_of(store) == before


def test_a_rename_to_a_name_in_use_leaves_the_replicator_as_it_was(store: StateStore) -> None:
    for definition in (SHOP, replace(SHOP, name="mall")):
        register(store, definition)
    before = store.replicators.all()
    with pytest.raises(CommandRefused, match="CMD029"):
        begin_rename(store, SHOP, replace(SHOP, name="mall"), "ann")
    assert store.replicators.all() == before
    require_unchanged(store, SHOP)


def test_what_is_finished_is_not_begun_again_by_a_repetition_on_its_way(store: StateStore) -> None:
    register(store, SHOP)
    moved = replace(SHOP.staging, location="/new")
    move = begin(store, SHOP, ChangeKind.MOVE, "ann", staging=moved, former_staging=SHOP.staging)
    store.replicators.change("shop", lambda entry: entry and replace(entry, definition=replace(SHOP, staging=moved)))
    record(store, "shop", move, done_at="2026-01-01T00:00:00Z")
    with pytest.raises(Blocked, match="CMD023"):
        begin(store, SHOP, ChangeKind.MOVE, "bob", staging=moved, former_staging=SHOP.staging)
    deletion = begin(store, replace(SHOP, staging=moved), ChangeKind.DELETE, "ann", drop_copies=False)
    record(store, "shop", deletion, done_at="2026-01-01T00:00:00Z")
    with pytest.raises(Blocked, match="CMD020"):
        begin(store, replace(SHOP, staging=moved), ChangeKind.DELETE, "bob", drop_copies=False)


def test_the_rows_of_a_replicator_get_another_name_or_go(store: StateStore) -> None:
    for name in ("shop", "other"):
        store.request(name, CommandKind.PAUSE, (), {}, "key", "ann")
        store.claim(name, "public.a", "r1", 1)
    for _ in range(2):
        store.replicators.rename_rows("shop", "mall")
    assert ([c.key for c in store.pending("mall")], store.pending("shop")) == (["key"], ())
    assert [claim.table for claim in store.claims("mall")] == ["public.a"]
    store.write_audit("mall", "ann", "delete", {})
    store.replicators.remove_rows("mall", lambda entry: entry)
    assert (store.pending("mall"), store.claims("mall"), len(store.audit("mall", 9))) == ((), (), 1)
    assert len(store.pending("other")) == len(store.claims("other")) == 1


RENAMED = {
    "cdc_command": {"id": "1", "key": "k", "status": "done"},
    "cdc_attempt": {"id": "1"},
    "cdc_claim": {"table": "public.a", "run_id": "r1"},
    "cdc_table": {"table": "public.a", "body": "shop"},
    "cdc_summary": {"body": "shop"},
    "cdc_position": {"body": "shop"},
    "cdc_alert": {"table": "public.a", "id": "1", "body": "shop"},
    "cdc_notice": {"body": "shop"},
}
ELSEWHERE = {"id": "2", "body": "store", "run_id": "r2", "status": "failed"}


@pytest.mark.parametrize("table", tables.KEPT_BY_RENAME, ids=str)
def test_renamed_rows_replace_those_that_commands_left_under_the_new_name(store: StateStore, table: sa.Table) -> None:
    assert RENAMED.keys() == {one.name for one in tables.KEPT_BY_RENAME}
    own = RENAMED[table.name]
    other = own | {
        name: ELSEWHERE[name] for name in own if name in ELSEWHERE and (table, name) != (tables.alerts, "id")
    }
    empty = {c.name: 0 if isinstance(c.type, sa.Integer) else "" for c in table.columns if c.name != "number"}
    with store.database.transaction() as connection:
        connection.execute(table.insert().values(**(empty | own | {"replicator": "shop"})))
        connection.execute(table.insert().values(**(empty | other | {"replicator": "store"})))
    store.replicators.rename_rows("shop", "store")
    query = sa.select(table).where(table.c.replicator == "store")
    found = [row._asdict() for row in store.database.rows(query)]
    assert any(own.items() <= row.items() for row in found)
    assert len(found) == (2 if table in (tables.attempts, tables.notices) else 1)
    store.replicators.rename_rows("shop", "store")
    assert [row._asdict() for row in store.database.rows(query)] == found


def test_only_what_is_gone_is_recreated(store: StateStore) -> None:
    register(store, SHOP)
    assert not recreate(store, "shop", "ann")
    begin(store, SHOP, ChangeKind.DELETE, "ann", drop_copies=False)
    assert not recreate(store, "shop", "ann"), "it is not finished"
    assert entry_of(store).unfinished is not None
