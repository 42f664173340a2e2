"""The end of a program: what was wrong ends, and then every copy must be equal."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.table.states import TableState
from tests.programs import program as acts
from tests.programs.carrying_out import carry_out
from tests.programs.copies import Copy
from tests.programs.findings import Finding
from tests.programs.life import Life
from tests.programs.runs import IDLE, RUNS, one_run, settle
from tests.programs.source import GOOD_TIME, TIME, Table

CLOSING_KEY, CLOSING_VALUE = 8, 1
MOVES = (TableState.REPLICATING, TableState.PAUSED, TableState.NEW)
"""States that a resync does not end."""


def heal(life: Life) -> None:
    """What was wrong ends, and an operator copies the stopped tables again: then every copy is equal."""
    life.outage = False
    for setting in sorted(life.off):
        carry_out(acts.Server(setting, on=True), life)
    if life.setup.declared_key:
        return
    life.world.reveal()
    if life.restore_targets():
        one_run(life)  # a command is refused for a copy that no run has seen under its name
    for number, table in enumerate(life.source_tables):
        for key in sorted(table.bad, key=str):
            _rewrite(life, table, key)
        if table.called != table.name:
            carry_out(acts.RenameTable(number), life)
        carry_out(acts.Put(CLOSING_KEY, CLOSING_VALUE, number), life)
    for copy in life.copies.values():
        if copy.paused:
            life.record_command(CommandKind.RESUME, copy.name)
            copy.paused, copy.pause = False, ""
    life.world.wait()
    for _ in range(3):
        for number in range(RUNS):
            life.world.searches_deletes = number == 0
            if set(one_run(life).states) <= IDLE:
                break
        stopped = [name for name, row in life.states().items() if name in life.copies and row.state not in MOVES]
        if not stopped or life.world.is_feed:
            break
        if any("table_features" in row.error for row in life.states().values()):
            carry_out(acts.AllowFeatures(), life)
        for name in stopped:
            life.record_command(CommandKind.RESYNC, name, approve_deletes=True)
            life.copies[name].copied_again = True
    settle(life)
    for name, row in life.states().items():
        if name not in life.copies or life.world.is_feed or _differ(life) or _meets_former(life.copies[name]):
            continue
        if _waits_for_target(life.copies[name], row.error):
            continue
        if row.state not in (TableState.REPLICATING, TableState.NEW):
            raise Finding("not healed", f"{name} is {row.state} in the end: {row.reason} {row.error}")


def _differ(life: Life) -> bool:
    """Whether tables that share a target table have one column with two types."""
    kinds = {(one.name, one.kind) for table in life.listed for one in table.columns}
    return life.setup.shards and len(kinds) > len({name for name, _ in kinds})


def _waits_for_target(copy: Copy, error: str) -> bool:
    """Whether an operator must remove rows or a table in the target, or name another one."""
    return (
        (copy.hidden_otherwise and "CPY025" in error)
        or (copy.cast_otherwise and "CPY013" in error)
        or (copy.is_under_other_name and "TGT012" in error)
    )


def _meets_former(copy: Copy) -> bool:
    """Whether a history, of which nothing is removed, has an earlier column under the name of a later one."""
    return copy.history != "none" and copy.table.reused


def _rewrite(life: Life, table: Table, key: Any) -> None:
    before = table.named_row(key)
    table.put(key, before | {TIME: GOOD_TIME})
    life.world.put(table, key, before)
    life.wrote(table, key)
