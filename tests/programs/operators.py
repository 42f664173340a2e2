"""The acts of operators: answers, commands, decisions about records, edits of the YAML."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from airflow_cdc_provider.control.answers import answer_open_question, open_questions
from airflow_cdc_provider.control.examine import examine_replicator
from airflow_cdc_provider.control.quarantine_commands import cases_of, decide_records
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import CommandRefused
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.schema import Kind
from airflow_cdc_provider.core.table.states import TableState
from tests.faults import leaving
from tests.faults.worker import TaskCall
from tests.programs import program as acts
from tests.programs.carrying_out import carry_out
from tests.programs.definitions import policy_of
from tests.programs.findings import Finding
from tests.programs.life import PROGRAMS, Life
from tests.programs.source import TIME


@carry_out.register
def _(act: acts.AddTarget, life: Life) -> None:
    if len(life.kinds) < 3:
        life.add_target(act.kind)


@carry_out.register
def _(act: acts.RemoveTarget, life: Life) -> None:
    if len(life.kinds) > 1:
        life.set_targets(life.kinds[:-1])


@carry_out.register
def _(act: acts.RenameTarget, life: Life) -> None:
    if life.kinds[-1].name != "default":
        life.rename_target()


@carry_out.register
def _(act: acts.AllowFeatures, life: Life) -> None:
    life.allow_features()


@carry_out.register
def _(act: acts.ChangePolicy, life: Life) -> None:
    life.redefine(schema_changes=policy_of(act.policy))


@carry_out.register
def _(act: acts.Edit, life: Life) -> None:
    if not life.setup.shards:
        life.edit(replace(life.setup, **{act.key: act.value}))
    if act.key == "sensitive" and not act.value:
        for table in life.source_tables:
            table.withheld.clear()


@carry_out.register
def _(act: acts.ListTables, life: Life) -> None:
    if not (life.setup.shards or life.setup.new):
        life.list_tables(max(1, act.count))


@carry_out.register
def _(act: acts.Check, life: Life) -> None:
    replicator = life.replicator()
    examination = examine_replicator(replicator)
    rows = life.states()
    healthy = all(
        not copy.grounds and name in rows and rows[name].state in (TableState.REPLICATING, TableState.PAUSED)
        for name, copy in life.copies.items()
    )
    off = life.off or life.outage or life.setup.zone == "hidden"
    if healthy and not off and examination.problems:
        raise Finding("check", f"nothing stops a copy, but check objects: {examination.problems[0]}")


@carry_out.register
def _(act: acts.Rename, life: Life) -> None:
    name = f"p{os.getpid()}_{next(PROGRAMS)}"
    try:
        leaving.carry_out(_call(life, leaving.RENAME, name=name))
    except CommandRefused:
        if not any(copy.is_under_other_name for copy in life.copies.values()):
            raise
        return
    life.redefine(name=name)


@carry_out.register
def _(act: acts.MoveStaging, life: Life) -> None:
    location = f"{life.folder}/staging{next(PROGRAMS)}"
    leaving.carry_out(_call(life, leaving.MOVE, location=location))
    life.redefine(staging=replace(life.definition.staging, location=location))


@carry_out.register
def _(act: acts.AnswerQuestion, life: Life) -> None:
    questions = open_questions(life.replicator())
    asked = [name for name in sorted(life.copies) if name in questions]
    if not asked:
        return
    copy = life.copies[asked[act.copy % len(asked)]]
    question = questions[copy.name]
    answer = _answer(act.answer, question.answers)
    if answer is None:
        return
    answer_open_question(life.replicator(), question, answer, "ada", "")
    if life.states()[copy.name].state is TableState.NEW:
        for one in life.copies_of(copy.table):
            one.unwanted = answer is Answer.IGNORE
            one.new = "copy" if answer is Answer.APPLY else one.new
    elif answer is Answer.IGNORE and question.columns:
        copy.left_out |= {one.id for one in copy.table.columns if one.name in question.columns}
    elif answer is Answer.APPLY:
        copy.left_out -= {one.id for one in copy.table.columns if one.name in question.columns}
    elif answer is Answer.IGNORE:
        copy.kept |= set(copy.table.written) - set(copy.table.rows)
    elif answer is Answer.RESYNC:
        copy.copied_again = True
    copy.grounds.add("schema")


@carry_out.register
def _(act: acts.Command, life: Life) -> None:
    copy = life.copy(act.copy)
    match act.kind:
        case "pause":
            copy.paused = True
            copy.pause = life.record_command(CommandKind.PAUSE, copy.name)
        case "resume":
            life.record_command(CommandKind.RESUME, copy.name)
            copy.paused, copy.pause = False, ""
        case "guarded resync":
            life.record_command(CommandKind.RESYNC, copy.name)
            copy.copied_again = True
            if life.world.is_feed:  # the table would be empty for a while
                copy.grounds.add("deletes")
        case "resync":
            life.record_command(CommandKind.RESYNC, copy.name, approve_deletes=True)
            copy.copied_again = True
        case "rewind":
            row = life.states().get(copy.name)
            if row is not None and row.window > 1:
                life.record_command(CommandKind.REWIND, copy.name, to=str(row.window - 1))
        case kind:
            life.record_command(CommandKind.VERIFY, copy.name, repair=kind == "repair")


@carry_out.register
def _(act: acts.Replay, life: Life) -> None:
    copy = life.copy(act.copy)
    cases = cases_of(life.replicator(), [copy.name])
    if not cases:
        return
    record = cases[0].record
    key = key_of(record)
    zone = "Z" if cases[0].table.columns[TIME].type.kind is Kind.TIMESTAMPTZ else ""
    values = {TIME: f"2026-01-01T00:00:00{zone}"} if act.kind == "set" else {}
    kind = CommandKind.DISCARD if act.kind == "discard" else CommandKind.REPLAY
    decide_records(life.replicator(), kind, [record.id], [copy.name], values, "", "ada", "")
    if act.kind == "discard":
        copy.unknown.add(key)
    elif act.kind == "set" and key in copy.table.bad:
        copy.set_values[key] = {TIME: "2026-01-01 00:00:00"}
    copy.decided |= {record.id} if act.kind != "replay" else set()


def _call(life: Life, task: str, **arguments: Any) -> TaskCall:
    return TaskCall(life.definition, life.secrets, life.state_url, task, "operator", arguments)


def _answer(wanted: int | str, allowed: Sequence[Answer]) -> Answer | None:
    if isinstance(wanted, int):
        return allowed[wanted % len(allowed)]
    return next((answer for answer in allowed if answer.value == wanted), None)


def key_of(record: Any) -> Any:
    change = record.record
    keys = json.loads(change.key or change.key_before or "[null]")
    return keys[-1]
