"""Runs, and what must be true when they are idle: every copy is equal to its source, or it is stopped visibly, with a
true reason."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from airflow_cdc_failpoints import ARMED, TOKEN

from airflow_cdc_provider.control.answers import open_questions
from airflow_cdc_provider.control.quarantine_commands import cases_of
from airflow_cdc_provider.core.decisions.commands import CommandStatus
from airflow_cdc_provider.core.table.states import TableState
from tests.faults.dag_run import DagRun
from tests.programs import program as acts
from tests.programs.carrying_out import carry_out
from tests.programs.copies import Copy
from tests.programs.findings import Finding, is_true
from tests.programs.killed import KilledRun
from tests.programs.life import Life
from tests.programs.operators import key_of
from tests.programs.past_rows import Past
from tests.spark.targets_of_kinds import rows_of

RUNS = 12
"""More than any work needs."""
IDLE = {"open_window", "close_window"}
CRASHES = ("JOB001", "KeyError", "Traceback", "report this", "TypeError", "AssertionError", "IndexError")


@carry_out.register
def _(act: acts.Run, life: Life) -> None:
    life.world.wait()
    one_run(life, act.kill)


def one_run(life: Life, kill: str = "") -> DagRun:
    life.redefine(source=life.world.source)
    for table in life.source_tables:
        if table.bad and not life.setup.set_null:
            life.ground("bad", table)
    before = _floors(life)
    with life.world.inheriting():
        dag_run = _executed(life, kill)
    for name, floor in _floors(life).items():
        copy = life.copies.get(name)
        if copy is None or before.get(name) == floor:
            continue
        if name in before and not life.world.has_ids and any(column.renamed for column in copy.table.columns):
            copy.recounted += 1
            copy.past = Past()
        copy.made()
        if copy.copied_again:
            copy.left_out.clear()
            copy.copied_again = False
    for problem in dag_run.problems:
        if any(word in problem for word in CRASHES):
            raise Finding("crash", problem)
    return dag_run


def _executed(life: Life, kill: str) -> DagRun:
    if kill:
        with tempfile.NamedTemporaryFile(prefix="cdc-token-", delete=False) as token:
            os.environ |= {ARMED: f"{kill}=raise:tests.programs.killed.Killed", TOKEN: token.name}
        try:
            return life.execute(KilledRun(life))  # type: ignore[arg-type]
        finally:
            del os.environ[ARMED], os.environ[TOKEN]
            Path(token.name).unlink(missing_ok=True)
    return life.run()


def _floors(life: Life) -> dict[str, str]:
    return {name: row.control.floor for name, row in life.states().items() if row.control}


@carry_out.register
def _(act: acts.Settle, life: Life) -> None:
    settle(life)


def settle(life: Life) -> None:
    life.world.wait()
    for number in range(RUNS):
        life.world.searches_deletes = number == 0
        dag_run = one_run(life)
        if set(dag_run.states) <= IDLE:
            break
    else:
        failing = [name for name, row in life.states().items() if row.state is TableState.FAILING]
        if not (failing and life.outage):
            raise Finding("endless", f"runs find work without end: {dag_run.states} {dag_run.problems[:3]}")
    life.world.settled()
    _compare(life, dag_run)


def _compare(life: Life, dag_run: DagRun) -> None:
    rows = life.states()
    questions = {} if life.outage else open_questions(life.replicator())
    stopped = False
    for name, copy in life.copies.items():
        row = rows.get(name)
        if row is not None and row.state is TableState.NEW:
            _require_question(copy, name in questions)
            continue
        if row is None and any(
            one.name in rows and rows[one.name].state is TableState.NEW for one in life.copies_of(copy.table)
        ):
            continue  # the table is asked about once
        if row is None:
            if not dag_run.problems:
                raise Finding("lost", f"{name} is in no state, and the run is green")
            stopped = True
            continue
        if row.state is TableState.DROPPED and copy.new and copy.table.called != copy.table.name:
            continue  # the pattern does not select it under its name now
        if copy.new in ("ask", "ignore"):
            raise Finding("unasked", f"{name} is {row.state}, although its table is new and not wanted")
        copy.new = ""
        if row.state is TableState.REPLICATING:
            if name in questions and not questions[name].about_difference:
                raise Finding("question", f"{name} is replicating, and is asked about: {questions[name].changes}")
            if _is_carried_out(life, copy.pause):
                raise Finding("undone", f"{name} is replicating, although it was paused and not resumed")
            if life.outage and copy.target in life.warehouses:
                continue
            _require_equal(life, copy, row.target)
            copy.made_in = copy.made_in or copy.target
            copy.grounds -= {"bad", "truncate", "missing", "deletes", "position", "definition", "listed", "created"}
            if copy.table.writes > copy.table.altered:
                copy.grounds.discard("schema")
            if not life.off:
                copy.grounds.discard("server")
            if copy.table.called == copy.table.name:
                copy.grounds.discard("renamed")
        elif row.state is TableState.PAUSED:
            if not copy.paused:
                raise Finding("no reason", f"{name} is paused without a command")
        else:
            stopped = True
            _require_reason(life, copy, row, dag_run)
    for name in life.gone.keys() & rows.keys():
        stopped |= _stays_stopped(life, name, rows[name])
    if stopped and dag_run.green:
        shown = {name: (str(row.state), row.reason) for name, row in rows.items()}
        raise Finding("green", f"a run is green although a copy is stopped: {shown}")
    paused = any(copy.paused and is_true(copy.grounds, " ".join(dag_run.problems)) for copy in life.copies.values())
    if not (stopped or paused or dag_run.green):
        raise Finding("red", f"a run fails although no copy is stopped: {dag_run.states} {dag_run.problems[:3]}")


def _is_carried_out(life: Life, command: str) -> bool:
    """One that was refused, or whose target has not answered yet, has no effect."""
    found = life.replicator().state.command(command) if command else None
    return found is not None and found.status is CommandStatus.DONE


def _require_question(copy: Copy, asked: bool) -> None:
    """Of a new table: it stops no run."""
    if not copy.new or copy.new == "copy":
        raise Finding("lost", f"{copy.name} is new, and no run copies it")
    if asked is not (copy.new == "ask" and not copy.unwanted):
        raise Finding("question", f"{copy.name} is new, {copy.new}: {'a' if asked else 'no'} question")


def _stays_stopped(life: Life, name: str, row: Any) -> bool:
    """Of a copy whose table was dropped."""
    if row.state is TableState.BLOCKED and life.setup.dropped in ("stop", "drop"):
        return True
    if row.state not in (TableState.DROPPED, TableState.NEW) and not life.outage:
        raise Finding("lost", f"{name} is {row.state}, and its table was dropped: {row.reason}")
    return False


def _require_equal(life: Life, copy: Copy, target: str) -> None:
    tables = life.replicator().targets.of(copy.name)
    try:
        rows = list(rows_of(tables, target, life.warehouses.get(copy.target), life.spark))
    except Exception as error:
        raise Finding("lost", f"{copy.name} is replicating and cannot be read: {error}") from error
    cases = cases_of(life.replicator(), [copy.name])
    if undone := [one.record.id for one in cases if one.record.id in copy.decided]:
        raise Finding("undone", f"{copy.name}: decisions about {', '.join(undone)} have no effect")
    waiting = {key_of(one.record) for one in cases}
    if keys := copy.needlessly(waiting):
        raise Finding("waits", f"{copy.name}: records of {sorted(map(str, keys))} wait, whose rows can be represented")
    found = list(copy.differences(rows, waiting))
    if found:
        raise Finding("wrong rows", f"{copy.name}: {'; '.join(found[:4])}")
    copy.remember(waiting)


def _require_reason(life: Life, copy: Copy, row: Any, dag_run: DagRun) -> None:
    text = " ".join(filter(None, (row.reason, row.error, row.remedy, *dag_run.problems)))
    grounds = copy.grounds | ({"outage"} if life.outage else set())
    if life.setup.declared_key:
        grounds = grounds | {"key"}
    if life.setup.zone == "hidden":
        grounds = grounds | {"zone"}
    if not grounds:
        raise Finding("no reason", f"{copy.name} is {row.state} although nothing happened: {row.reason} {row.error}")
    if not is_true(grounds | {"deletes"} | ({"feed"} if life.world.is_feed else set()), text):
        raise Finding("false reason", f"{copy.name} is {row.state}: {text}; but there is {sorted(grounds)}")
    if row.state is TableState.FAILING and not life.outage:
        raise Finding("not healed", f"{copy.name} fails again and again: {row.error or text}")
