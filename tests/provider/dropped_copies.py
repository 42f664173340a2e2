"""A source that has dropped a table, and runs that die while they drop its copy."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_cdc_provider.control import begun_drops
from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.table_policy import OnDroppedTable
from airflow_cdc_provider.core.table.identity import TableIdentity
from airflow_cdc_provider.core.table.state_rows import Lane, TableRow
from airflow_cdc_provider.state.store import StateStore
from tests.provider.command_line import replicated
from tests.provider.run_harness import FileSource, LoggedFileTarget, RunHarness, schema

A, B = "public.a", "public.b"
HOW = ["fenced", "before", "amid", "after"]


class Killed(Exception):
    """The process ends here."""


class ConfirmingSource(FileSource):
    def is_dropped(self, table: str, identity: TableIdentity | None) -> bool:
        return table not in {schema.table for schema in self.tables()}


def without_b(harness: RunHarness) -> RunHarness:
    """The copies of ``a`` and ``b`` exist, and the source has dropped ``b``."""
    harness.definition = replace(
        harness.definition, tables=(TableRule("public.*"), TableRule(B, dropped_tables=OnDroppedTable.DROP))
    )
    harness.source = ConfirmingSource(harness.source.path)
    replicated(harness)
    list_tables(harness, A)
    return harness


def list_tables(shop: RunHarness, *tables: str) -> None:
    shop.source.write(tables=[to_plain(schema(table)) for table in tables])


def row(shop: RunHarness) -> TableRow:
    return shop.state.tables("shop")[B]


def lake(shop: RunHarness) -> LoggedFileTarget:
    target = shop.replicator.targets.of(B)
    assert isinstance(target, LoggedFileTarget)
    return target


def lock(shop: RunHarness) -> None:
    lake(shop).store.write("public_b/locked", b"")


def has_copy(shop: RunHarness) -> bool:
    return "public_b" in lake(shop).store.names("")


def killed_in_the_drop(shop: RunHarness, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """``how``: when it has only fenced the copy, before it has dropped anything of it, amid that, or when everything is
    dropped."""
    drop = LoggedFileTarget.drop

    def kill(self: LoggedFileTarget, target_table: str, identity: str) -> None:
        if how == "amid":
            lock(shop)  # what is left cannot be read
        if how == "after":
            drop(self, target_table, identity)
        raise Killed

    def killed(*arguments: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(LoggedFileTarget, "drop", kill)
        if how == "fenced":
            patched.setattr(begun_drops, "mark_copy", killed)
        with pytest.raises(Killed):
            shop.open("r2")
    for lane in Lane:
        shop.state.release("shop", lane, "r2")  # as when the leases end


def rebuilt(shop: RunHarness) -> None:
    """The state store is lost, and its index is rebuilt in another one."""
    shop.state = StateStore(f"sqlite:///{shop.folder}/other.db")
    rebuild_index(shop.replicator, "ann")
