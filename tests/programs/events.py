"""What happens to the source and to the targets."""

from __future__ import annotations

import shutil

from tests.programs import program as acts
from tests.programs.carrying_out import carry_out
from tests.programs.life import Life
from tests.programs.past_rows import Past
from tests.programs.runs import one_run


@carry_out.register
def _(act: acts.Server, life: Life) -> None:
    if act.setting in life.world.settings:
        if act.setting in life.off and act.setting in life.world.shown_by_runs:
            one_run(life)
        life.world.set(act.setting, act.on)
        (life.off.discard if act.on else life.off.add)(act.setting)
        life.ground("server")


@carry_out.register
def _(act: acts.Inherit, life: Life) -> None:
    world = life.world
    if world.inheritable:
        (world.inherited.add if act.on else world.inherited.discard)(act.setting % len(world.inheritable))


@carry_out.register
def _(act: acts.LoseLog, life: Life) -> None:
    if life.world.loses_log:
        life.world.lose_log()
        life.ground("position")


@carry_out.register
def _(act: acts.SetClock, life: Life) -> None:
    life.world.set_clock(act.forth)


@carry_out.register
def _(act: acts.LoseCopy, life: Life) -> None:
    copy = life.copy(act.copy)
    rows = life.states()
    row = rows.get(copy.name)
    if row is None or row.control is None:
        return
    if database := life.warehouses.get(copy.target):
        database.execute(f"DROP TABLE IF EXISTS {database.schema}.{row.target}")
    else:
        target = life.definition.target_named(copy.target)
        shutil.rmtree(f"{target.location}/{row.target}", ignore_errors=True)
    for other in life.copies.values():  # two shards are in one table
        if other.target == copy.target and other.name in rows and rows[other.name].target == row.target:
            other.grounds.add("missing")
            other.past = Past()
            other.pause = ""


@carry_out.register
def _(act: acts.Outage, life: Life) -> None:
    life.outage = not act.on and bool(life.warehouses)
