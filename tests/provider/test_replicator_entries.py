"""The entries of replicators in the state store, and what is recorded in them before a change has an effect."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.control.replicator_changes import begin, recreate, register, require_unchanged
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.replicator_changes import ChangeKind, OwnedTable, ReplicatorEntry
from airflow_cdc_provider.core.errors import Blocked, CommandRefused
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
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
    assert begin(store, SHOP, ChangeKind.DELETE, "bob", drop_copies=True) == first
    with pytest.raises(CommandRefused, match=r"CMD024.*airflow cdc delete shop --drop-copies"):
        begin(store, SHOP, ChangeKind.RENAME, "ann", former="shop", name="mall")
    owned = replace(first, owned=(OwnedTable("public.a", "a", "1"),))
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


def test_only_what_is_gone_is_recreated(store: StateStore) -> None:
    register(store, SHOP)
    assert not recreate(store, "shop", "ann")
    begin(store, SHOP, ChangeKind.DELETE, "ann", drop_copies=False)
    assert not recreate(store, "shop", "ann"), "it is not finished"
    assert entry_of(store).unfinished is not None
