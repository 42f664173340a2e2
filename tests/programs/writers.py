"""The acts of those who write to the source, and alter it."""

from __future__ import annotations

from typing import Any

from tests.programs import program as acts
from tests.programs.carrying_out import carry_out
from tests.programs.life import Life
from tests.programs.source import BAD_TIME, NAMES, TIME, Table


@carry_out.register
def _(act: acts.Put, life: Life) -> None:
    table = life.table(act.table)
    _put(life, table, table.key(act.key), table.values(act.value))


@carry_out.register
def _(act: acts.PutBad, life: Life) -> None:
    if not life.world.has_bad:
        return
    table = life.table(act.table)
    _put(life, table, table.key(act.key), table.values(act.key + 4) | {TIME: BAD_TIME})


def _put(life: Life, table: Table, key: Any, values: dict[str, Any]) -> None:
    before = table.named_row(key) if key in table.rows else None
    table.put(key, values)
    life.world.put(table, key, before)
    if before != table.named_row(key) or life.world.logs_equal_rows:
        life.wrote(table, key)


@carry_out.register
def _(act: acts.Delete, life: Life) -> None:
    table = life.table(act.table)
    key = table.key(act.key)
    if key in table.rows:
        before = table.named_row(key)
        table.delete(key)
        life.world.delete(table, key, before)
        life.wrote(table, key)
        life.ground("deletes", table)


@carry_out.register
def _(act: acts.Move, life: Life) -> None:
    table = life.table(act.table)
    key, to = table.key(act.key), table.key(act.to)
    if key in table.rows and to not in table.rows:
        before = table.named_row(key)
        table.move(key, to)
        life.world.move(table, key, to, before)
        life.wrote(table, key, to)
        life.ground("deletes", table)


@carry_out.register
def _(act: acts.Truncate, life: Life) -> None:
    table = life.table(act.table)
    if not life.world.truncates:
        return
    keys = list(table.rows)
    table.truncate()
    life.world.truncate(table)
    life.wrote(table, *keys)
    for copy in life.copies_of(table):
        copy.set_values.clear()
        copy.unknown.clear()
    life.ground("truncate", table)
    life.ground("schema", table)


@carry_out.register
def _(act: acts.Transaction, life: Life) -> None:
    with life.world.transaction():
        for write in act.writes:
            carry_out(write, life)


@carry_out.register
def _(act: acts.AddColumn, life: Life) -> None:
    table, name = life.table(act.table), NAMES[act.name % len(NAMES)]
    if not life.world.alters or table.column(name):
        return
    default = 7 if act.kind == "default" else None
    column = table.add(name, "int" if act.kind in ("int", "default") else "text", default)
    life.world.add(table, column)
    if life.setup.sensitive:
        table.withheld.add(column.id)
    life.altered(table)


@carry_out.register
def _(act: acts.DropColumn, life: Life) -> None:
    table = life.table(act.table)
    if life.world.alters and table.changeable:
        column = table.changeable[act.column % len(table.changeable)]
        table.drop(column)
        life.world.drop(table, column.name)
        life.altered(table)


@carry_out.register
def _(act: acts.RenameColumn, life: Life) -> None:
    table, name = life.table(act.table), NAMES[act.to % len(NAMES)]
    if life.world.alters and table.changeable and not table.column(name):
        column = table.changeable[act.column % len(table.changeable)]
        old = column.name
        table.rename(column, name)
        life.world.rename(table, old, name)
        life.altered(table)


@carry_out.register
def _(act: acts.RenameTable, life: Life) -> None:
    table = life.table(act.table)
    if life.world.renames_tables:
        life.world.rename_table(table, table.name if table.called != table.name else f"{table.name}_other")
        life.ground("renamed", table)


@carry_out.register
def _(act: acts.CreateTable, life: Life) -> None:
    life.create_table()


@carry_out.register
def _(act: acts.DropTable, life: Life) -> None:
    life.drop_table(life.table(act.table))


@carry_out.register
def _(act: acts.Retype, life: Life) -> None:
    table = life.table(act.table)
    column = table.column("a" if act.kind == "widen" else "v")
    to = {"int": "long", "text": "short"}.get(column.kind if column else "")
    if life.world.alters and column is not None and to and not (life.setup.declared_key and act.kind == "widen"):
        column.kind = to
        life.world.retype(table, column)
        life.altered(table)
