"""A program is carried out: on a real source, by real runs, into real targets. At each idle point every copy is equal
to its source, or it is stopped visibly, with a true reason."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatchmethod
from itertools import count
from pathlib import Path
from typing import Any

from airflow_cdc_failpoints import ARMED, TOKEN
from pyspark.sql import SparkSession

from airflow_cdc_provider.control.answers import answer_open_question, open_questions
from airflow_cdc_provider.control.quarantine_commands import cases_of, decide_records
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets, TargetSecrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults import leaving
from tests.faults.dag_run import DagRun
from tests.faults.worker import TaskCall
from tests.programs import program as acts
from tests.programs.copies import HASH_KEY, Copy
from tests.programs.definitions import TargetKind, definition_of, policy_of, rule_of, target_of
from tests.programs.findings import Finding, is_true
from tests.programs.program import Act, Program, Setup
from tests.programs.source import BAD_TIME, GOOD_TIME, KEY, NAMES, TIME, Table
from tests.programs.worlds.feeds import DebeziumWorld, YdbWorld
from tests.programs.worlds.mariadb import MariaDBWorld
from tests.programs.worlds.polled import PolledWorld
from tests.programs.worlds.postgres import PostgresWorld
from tests.programs.worlds.world import World
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.pipeline import Pipeline
from tests.spark.targets_of_kinds import SERVERS, rows_of

RUNS = 12
"""More than any work needs."""
IDLE = {"open_window", "close_window"}
TABLES = ("t", "u", "w")
CLOSING_KEY, CLOSING_VALUE = 8, 1
CRASHES = ("JOB001", "KeyError", "Traceback", "report this", "TypeError", "AssertionError", "IndexError")


class Killed(BaseException):
    """The process of a task ends here."""


class KilledRun(DagRun):
    """Airflow sees a task whose process died as one that failed, and tries it again."""

    def _try(self, task: str, attempt: Any, arguments: Any, injection: Any) -> Any:
        def in_process(number: int) -> Any:
            try:
                return attempt(number)
            except Killed as killed:
                raise RuntimeError(f"the process of {task} died") from killed

        return super()._try(task, in_process, arguments, injection)


@dataclass(frozen=True)
class Servers:
    postgres: EmbeddedPostgres
    mariadb: EmbeddedMariaDB
    spark: SparkSession

    def of_target(self, kind: str) -> EmbeddedPostgres | EmbeddedMariaDB:
        return self.postgres if SERVERS[kind] == "postgres" else self.mariadb


def carry_out(program: Program, servers: Servers) -> None:
    """Raises Finding."""
    with tempfile.TemporaryDirectory(prefix="cdc-program-") as folder, contextlib.ExitStack() as stack:
        os.chmod(folder, 0o755)
        world = _world(program.setup, servers, Path(folder))
        stack.callback(world.close)
        life = Life(Path(folder), servers, program.setup, world, stack)
        for act in (*program.acts, acts.Settle()):
            life.act(act)
        life.heal()


def _world(setup: Setup, servers: Servers, folder: Path) -> World:
    match setup.source:
        case acts.MARIADB:
            return MariaDBWorld(servers.mariadb, setup.reconcile)
        case acts.POLL:
            return PolledWorld(servers.postgres, setup.reconcile)
        case acts.DEBEZIUM:
            return DebeziumWorld(folder, setup.statements)
        case acts.YDB:
            return YdbWorld(folder)
    return PostgresWorld(servers.postgres, setup.reconcile)


class Life(Pipeline):
    """``off``: settings of the server that are not as the replicator needs them."""

    def __init__(self, folder: Path, servers: Servers, setup: Setup, world: World, stack: contextlib.ExitStack) -> None:
        self.folder, self.servers, self.setup, self.world, self.stack = folder, servers, setup, world, stack
        self.spark = servers.spark
        self.copies: dict[str, Copy] = {}
        self.off: set[str] = set()
        self.outage = False
        self.warehouses: dict[str, Database] = {}
        self._numbers = count(1)
        named = frozenset({KEY}) | ({"s"} if self.setup.secret != "plain" else set())
        text_keys = self.setup.text_keys
        self.source_tables = [Table(name, text_keys, named) for name in TABLES[: self.setup.tables]]
        for table in self.source_tables:
            self.world.create(table)
        self.world.begin(self.source_tables, self.setup.filtered)
        self.kinds: list[TargetKind] = []
        self.definition = definition_of(
            self.setup, self.world.source, self._rules(), self.folder, f"p{os.getpid()}_{next(PROGRAMS)}"
        )
        for kind in self.setup.targets:
            self._add_target(kind)

    # --- the replicator

    def _rules(self) -> tuple[Any, ...]:
        return tuple(rule_of(self.setup, self.world.table_name(one.name), one.name) for one in self.source_tables)

    def _add_target(self, kind: str) -> None:
        number = next(self._numbers)
        name = "default" if number == 1 and self.setup.unnamed else f"t{number}"
        if kind in SERVERS:
            schema = f"{self.definition.name}_{name}"
            self.warehouses[name] = self.stack.enter_context(new_schema(kind, self.servers.of_target(kind), schema))
        self._set_targets([*self.kinds, TargetKind(kind, name)])

    def _set_targets(self, kinds: list[TargetKind]) -> None:
        self.kinds = kinds
        targets = tuple(target_of(one, self.folder, self._schema(one.name)) for one in kinds)
        if len(targets) == 1 and targets[0].name == "default":
            self.definition = replace(self.definition, target=targets[0], targets=())
        else:
            self.definition = replace(self.definition, target=None, targets=targets)
        wanted = {copy.name: copy for one in kinds for copy in self._copies_in(one.name)}
        self.copies = {name: self.copies.get(name, copy) for name, copy in wanted.items()}

    def _schema(self, name: str) -> str:
        return self.warehouses[name].schema if name in self.warehouses else ""

    def _copies_in(self, target: str) -> Iterator[Copy]:
        for table in self.source_tables:
            name = self.world.table_name(table.name) + ("" if target == "default" else f"@{target}")
            beside = self.setup.history != "none" and self.setup.beside
            yield Copy(name, target, table, self.setup, "none" if beside else self.setup.history)
            if beside:
                yield Copy(f"{name}:history", target, table, self.setup, self.setup.history)

    @property
    def secrets(self) -> Secrets:
        targets = {one.name: TargetSecrets() for one in self.kinds}
        for name, database in self.warehouses.items():
            port = free_ports(1)[0] if self.outage else database.connection.port
            targets[name] = TargetSecrets(replace(database.connection, port=port))
        alone = targets.get("default", TargetSecrets()).target
        hashes = ConnectionInfo("hashes", password=HASH_KEY)
        return Secrets(self.world.connection, alone, targets=targets, hash=hashes)

    def _copy(self, number: int) -> Copy:
        names = sorted(self.copies)
        return self.copies[names[number % len(names)]]

    def _states(self) -> dict[str, Any]:
        return self.replicator().state.tables(self.definition.name)

    # --- acts

    def act(self, act: Act) -> None:
        try:
            self._act(act)
        except (CdcError, Finding):
            if not isinstance(act, (acts.Run, acts.Settle)):
                return  # what is refused has no effect
            raise
        except Exception as error:
            raise Finding("crash", f"{act}: {type(error).__name__}: {error}") from error

    @singledispatchmethod
    def _act(self, act: Act) -> None:
        raise TypeError(act)

    def _table(self, number: int) -> Table:
        return self.source_tables[number % len(self.source_tables)]

    def _copies_of(self, table: Table) -> list[Copy]:
        return [copy for copy in self.copies.values() if copy.table is table]

    def _ground(self, ground: str, table: Table | None = None) -> None:
        for copy in self.copies.values():
            if table is None or copy.table is table:
                copy.grounds.add(ground)

    def _altered(self, table: Table) -> None:
        table.altered = table.writes
        self._ground("schema", table)

    def _wrote(self, table: Table, *keys: Any) -> None:
        for copy in self._copies_of(table):
            for key in keys:
                copy.wrote(key)

    @_act.register
    def _(self, act: acts.Put) -> None:
        table = self._table(act.table)
        key = table.key(act.key)
        before = table.named_row(key) if key in table.rows else None
        table.put(key, table.values(act.value))
        self.world.put(table, key, before)
        self._wrote(table, key)

    @_act.register
    def _(self, act: acts.PutBad) -> None:
        if not self.world.has_bad:
            return
        table = self._table(act.table)
        key = table.key(act.key)
        before = table.named_row(key) if key in table.rows else None
        table.put(key, table.values(act.key + 4) | {TIME: BAD_TIME})
        self.world.put(table, key, before)
        self._wrote(table, key)
        if not self.setup.set_null:
            self._ground("bad", table)

    @_act.register
    def _(self, act: acts.Delete) -> None:
        table = self._table(act.table)
        key = table.key(act.key)
        if key in table.rows:
            before = table.named_row(key)
            table.delete(key)
            self.world.delete(table, key, before)
            self._wrote(table, key)
            self._ground("deletes", table)

    @_act.register
    def _(self, act: acts.Move) -> None:
        table = self._table(act.table)
        key, to = table.key(act.key), table.key(act.to)
        if key in table.rows and to not in table.rows:
            before = table.named_row(key)
            table.move(key, to)
            self.world.move(table, key, to, before)
            self._wrote(table, key, to)
            self._ground("deletes", table)

    @_act.register
    def _(self, act: acts.Truncate) -> None:
        table = self._table(act.table)
        if not self.world.truncates:
            return
        keys = list(table.rows)
        table.truncate()
        self.world.truncate(table)
        self._wrote(table, *keys)
        for copy in self._copies_of(table):
            copy.set_values.clear()
            copy.unknown.clear()
        self._ground("truncate", table)
        self._ground("schema", table)

    @_act.register
    def _(self, act: acts.AddColumn) -> None:
        table, name = self._table(act.table), NAMES[act.name % len(NAMES)]
        if not self.world.alters or table.column(name):
            return
        default = 7 if act.kind == "default" else None
        column = table.add(name, "int" if act.kind in ("int", "default") else "text", default)
        self.world.add(table, column)
        if self.setup.sensitive:
            for copy in self._copies_of(table):
                copy.withheld.add(column.id)
        self._altered(table)

    @_act.register
    def _(self, act: acts.DropColumn) -> None:
        table = self._table(act.table)
        if self.world.alters and table.changeable:
            column = table.changeable[act.column % len(table.changeable)]
            table.drop(column)
            self.world.drop(table, column.name)
            self._altered(table)

    @_act.register
    def _(self, act: acts.RenameColumn) -> None:
        table, name = self._table(act.table), NAMES[act.to % len(NAMES)]
        if self.world.alters and table.changeable and not table.column(name):
            column = table.changeable[act.column % len(table.changeable)]
            old, column.name, column.born = column.name, name, table.writes
            self.world.rename(table, old, name)
            self._altered(table)
            if self.setup.sensitive:  # a new name is not a name that the YAML knows
                for copy in self._copies_of(table):
                    copy.withheld.add(column.id)

    @_act.register
    def _(self, act: acts.Retype) -> None:
        table = self._table(act.table)
        column = table.column("a" if act.kind == "widen" else "v")
        to = {"int": "long", "text": "short"}.get(column.kind if column else "")
        if self.world.alters and column is not None and to and not (self.setup.declared_key and act.kind == "widen"):
            column.kind = to
            self.world.retype(table, column)
            self._altered(table)

    @_act.register
    def _(self, act: acts.Server) -> None:
        if act.setting in self.world.settings:
            self.world.set(act.setting, act.on)
            (self.off.discard if act.on else self.off.add)(act.setting)
            self._ground("publication")

    @_act.register
    def _(self, act: acts.LoseLog) -> None:
        if self.world.loses_log:
            self.world.lose_log()
            self._ground("position")

    @_act.register
    def _(self, act: acts.ClockBack) -> None:
        self.world.clock_back()

    @_act.register
    def _(self, act: acts.LoseCopy) -> None:
        copy = self._copy(act.copy)
        row = self._states().get(copy.name)
        if row is None or row.control is None:
            return
        if database := self.warehouses.get(copy.target):
            database.execute(f"DROP TABLE {database.schema}.{row.target}")
        else:
            target = self.definition.target_named(copy.target)
            shutil.rmtree(f"{target.location}/{row.target}", ignore_errors=True)
        for other in self.copies.values():  # two shards are in one table
            if other.target == copy.target and self._states()[other.name].target == row.target:
                other.grounds.add("missing")

    @_act.register
    def _(self, act: acts.Outage) -> None:
        self.outage = not act.on and bool(self.warehouses)

    @_act.register
    def _(self, act: acts.AddTarget) -> None:
        if len(self.kinds) < 3:
            self._add_target(act.kind)

    @_act.register
    def _(self, act: acts.RemoveTarget) -> None:
        if len(self.kinds) > 1:
            self._set_targets(self.kinds[:-1])

    @_act.register
    def _(self, act: acts.ChangePolicy) -> None:
        self.definition = replace(self.definition, schema_changes=policy_of(act.policy))

    @_act.register
    def _(self, act: acts.Rename) -> None:
        name = f"p{os.getpid()}_{next(PROGRAMS)}"
        leaving.carry_out(self._call(leaving.RENAME, name=name))
        self.definition = replace(self.definition, name=name)

    @_act.register
    def _(self, act: acts.MoveStaging) -> None:
        location = f"{self.folder}/staging{next(PROGRAMS)}"
        leaving.carry_out(self._call(leaving.MOVE, location=location))
        self.definition = replace(self.definition, staging=replace(self.definition.staging, location=location))

    def _call(self, task: str, **arguments: Any) -> TaskCall:
        return TaskCall(self.definition, self.secrets, self.state_url, task, "operator", arguments)

    @_act.register
    def _(self, act: acts.AnswerQuestion) -> None:
        questions = open_questions(self.replicator())
        asked = [name for name in sorted(self.copies) if name in questions]
        if not asked:
            return
        copy = self.copies[asked[act.copy % len(asked)]]
        question = questions[copy.name]
        answer = _answer(act.answer, question.answers)
        if answer is None:
            return
        answer_open_question(self.replicator(), question, answer, "ada", "")
        if answer is Answer.IGNORE and question.columns:
            copy.left_out |= {one.id for one in copy.table.columns if one.name in question.columns}
        elif answer is Answer.IGNORE:
            copy.kept |= set(copy.table.written) - set(copy.table.rows)
        elif answer is Answer.RESYNC:
            copy.copied_again = True
        copy.grounds.add("schema")

    @_act.register
    def _(self, act: acts.Command) -> None:
        copy = self._copy(act.copy)
        match act.kind:
            case "pause":
                copy.paused = True
                self.record_command(CommandKind.PAUSE, copy.name)
            case "resume":
                self.record_command(CommandKind.RESUME, copy.name)
                copy.paused = False
            case "resync":
                self.record_command(CommandKind.RESYNC, copy.name, approve_deletes=True)
                copy.copied_again = True
            case "rewind":
                row = self._states().get(copy.name)
                if row is not None and row.window > 1:
                    self.record_command(CommandKind.REWIND, copy.name, to=str(row.window - 1))
            case kind:
                self.record_command(CommandKind.VERIFY, copy.name, repair=kind == "repair")

    @_act.register
    def _(self, act: acts.Replay) -> None:
        copy = self._copy(act.copy)
        cases = cases_of(self.replicator(), [copy.name])
        if not cases:
            return
        record = cases[0].record
        key = _key_of(record)
        values = {TIME: "2026-01-01T00:00:00"} if act.kind == "set" else {}
        kind = CommandKind.DISCARD if act.kind == "discard" else CommandKind.REPLAY
        decide_records(self.replicator(), kind, [record.id], [copy.name], values, "", "ada", "")
        if act.kind == "discard":
            copy.unknown.add(key)
        elif act.kind == "set" and key in copy.table.bad:
            copy.set_values[key] = {TIME: "2026-01-01 00:00:00"}
        copy.decided |= {record.id} if act.kind != "replay" else set()

    # --- runs

    @_act.register
    def _(self, act: acts.Run) -> None:
        self.world.wait()
        self._run(act.kill)

    def _run(self, kill: str = "") -> DagRun:
        self.definition = replace(self.definition, source=self.world.source)
        before = self._floors()
        if kill:
            with tempfile.NamedTemporaryFile(prefix="cdc-token-", delete=False) as token:
                os.environ |= {ARMED: f"{kill}=raise:tests.programs.life.Killed", TOKEN: token.name}
            try:
                dag_run = self.execute(KilledRun(self))  # type: ignore[arg-type]
            finally:
                del os.environ[ARMED], os.environ[TOKEN]
                Path(token.name).unlink(missing_ok=True)
        else:
            dag_run = self.run()
        for name, floor in self._floors().items():
            if name in self.copies and before.get(name) != floor and self.copies[name].copied_again:
                self.copies[name].left_out.clear()
                self.copies[name].copied_again = False
        for problem in dag_run.problems:
            if any(word in problem for word in CRASHES):
                raise Finding("crash", problem)
        return dag_run

    def _floors(self) -> dict[str, str]:
        return {name: row.control.floor for name, row in self._states().items() if row.control}

    @_act.register
    def _(self, act: acts.Settle) -> None:
        self.settle()

    def settle(self) -> None:
        self.world.wait()
        for number in range(RUNS):
            self.world.looks_for_deletes = number == 0
            dag_run = self._run()
            if set(dag_run.states) <= IDLE:
                break
        else:
            failing = [name for name, row in self._states().items() if row.state is TableState.FAILING]
            if not (failing and self.outage):
                raise Finding("endless", f"runs find work without end: {dag_run.states} {dag_run.problems[:3]}")
        self._compare(dag_run)

    def _compare(self, dag_run: DagRun) -> None:
        rows = self._states()
        questions = {} if self.outage else open_questions(self.replicator())
        stopped = False
        for name, copy in self.copies.items():
            row = rows.get(name)
            if row is None:
                if not dag_run.problems:
                    raise Finding("lost", f"{name} is in no state, and the run is green")
                stopped = True
                continue
            if row.state is TableState.REPLICATING:
                if name in questions and not questions[name].about_difference:
                    raise Finding("question", f"{name} is replicating, and is asked about: {questions[name].changes}")
                if self.outage and copy.target in self.warehouses:
                    continue
                self._require_equal(copy, row.target)
                copy.grounds -= {"bad", "truncate", "missing", "deletes", "position"}
                if copy.table.writes > copy.table.altered:
                    copy.grounds.discard("schema")
                if not self.off:
                    copy.grounds.discard("publication")
            elif row.state is TableState.PAUSED:
                if not copy.paused:
                    raise Finding("no reason", f"{name} is paused, and nobody paused it")
            else:
                stopped = True
                self._require_reason(copy, row, dag_run)
        if stopped and dag_run.green:
            shown = {name: (str(row.state), row.reason) for name, row in rows.items()}
            raise Finding("green", f"a run is green although a copy is stopped: {shown}")
        if not stopped and not dag_run.green:
            raise Finding("red", f"a run fails although no copy is stopped: {dag_run.states} {dag_run.problems[:3]}")

    def _require_equal(self, copy: Copy, target: str) -> None:
        tables = self.replicator().targets.of(copy.name)
        try:
            rows = list(rows_of(tables, target, self.warehouses.get(copy.target), self.spark))
        except Exception as error:
            raise Finding("lost", f"{copy.name} is replicating and cannot be read: {error}") from error
        cases = cases_of(self.replicator(), [copy.name])
        if undone := [one.record.id for one in cases if one.record.id in copy.decided]:
            raise Finding("undone", f"{copy.name}: decisions about {', '.join(undone)} have no effect")
        waiting = {_key_of(one.record) for one in cases}
        found = list(copy.differences(rows, waiting))
        if found:
            raise Finding("wrong rows", f"{copy.name}: {'; '.join(found[:4])}")

    def _require_reason(self, copy: Copy, row: Any, dag_run: DagRun) -> None:
        text = " ".join(filter(None, (row.reason, row.error, row.remedy, *dag_run.problems)))
        grounds = copy.grounds | ({"outage"} if self.outage else set())
        if self.setup.declared_key:
            grounds = grounds | {"key"}
        if not grounds:
            raise Finding(
                "no reason", f"{copy.name} is {row.state} although nothing happened: {row.reason} {row.error}"
            )
        if not is_true(grounds | {"deletes"} | ({"feed"} if self.world.is_feed else set()), text):
            raise Finding("false reason", f"{copy.name} is {row.state}: {text}; but there is {sorted(grounds)}")
        if row.state is TableState.FAILING and not self.outage:
            raise Finding("not healed", f"{copy.name} fails again and again: {row.error or text}")

    # --- the end

    def heal(self) -> None:
        """What was wrong ends, and an operator copies the stopped tables again: then every copy is equal."""
        self.outage = False
        for setting in sorted(self.off):
            self.act(acts.Server(setting, on=True))
        if self.setup.declared_key:
            return
        for number, table in enumerate(self.source_tables):
            for key in sorted(table.bad, key=str):
                self._rewrite(table, key)
            self.act(acts.Put(CLOSING_KEY, CLOSING_VALUE, number))
        for copy in self.copies.values():
            if copy.paused:
                self.record_command(CommandKind.RESUME, copy.name)
                copy.paused = False
        self.world.wait()
        for _ in range(3):
            for number in range(RUNS):
                self.world.looks_for_deletes = number == 0
                if set(self._run().states) <= IDLE:
                    break
            stopped = [
                name
                for name, row in self._states().items()
                if name in self.copies and row.state not in (TableState.REPLICATING, TableState.PAUSED)
            ]
            if not stopped or self.world.is_feed:
                break
            for name in stopped:
                self.record_command(CommandKind.RESYNC, name, approve_deletes=True)
                self.copies[name].copied_again = True
        self.settle()
        for name, row in self._states().items():
            if name in self.copies and row.state is not TableState.REPLICATING and not self.world.is_feed:
                raise Finding("not healed", f"{name} is {row.state} in the end: {row.reason} {row.error}")

    def _rewrite(self, table: Table, key: Any) -> None:
        before = table.named_row(key)
        table.put(key, before | {TIME: GOOD_TIME})
        self.world.put(table, key, before)
        self._wrote(table, key)


def _answer(wanted: int | str, allowed: Sequence[Answer]) -> Answer | None:
    if isinstance(wanted, int):
        return allowed[wanted % len(allowed)]
    return next((answer for answer in allowed if answer.value == wanted), None)


def _key_of(record: Any) -> Any:
    change = record.record
    keys = json.loads(change.key or change.key_before or "[null]")
    return keys[-1]


PROGRAMS = count(1)
