"""A replicator during a program: its definition, its source, its targets, and what each of its copies must hold."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets, TargetSecrets
from airflow_cdc_provider.core.spec.definition import EngineMode, Spark
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.ports import free_ports
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.programs.copies import HASH_KEY, SCHEMA_ONLY, Copy
from tests.programs.definitions import PATTERN, TargetKind, definition_of, rule_of, target_of
from tests.programs.past_rows import Past
from tests.programs.program import DELTA, FEATURES, Setup
from tests.programs.source import KEY, TEXT, Table
from tests.programs.worlds.world import World
from tests.programs.yaml_form import as_loaded
from tests.spark.databases import Database, new_schema
from tests.spark.pipelines.pipeline import Pipeline
from tests.spark.targets_of_kinds import SERVERS

TABLES = ("t", "u", "w")
PROGRAMS = count(1)
"""Names of replicators are not used again."""


@dataclass(frozen=True)
class Servers:
    postgres: EmbeddedPostgres
    mariadb: EmbeddedMariaDB
    spark: SparkSession

    def of_target(self, kind: str) -> EmbeddedPostgres | EmbeddedMariaDB:
        return self.postgres if SERVERS[kind] == "postgres" else self.mariadb


class Life(Pipeline):
    """``off``: settings of the server that are not as the replicator needs them. ``gone``: copies whose table
    was dropped, by name; ``unlisted``: those that left the YAML."""

    def __init__(self, folder: Path, servers: Servers, setup: Setup, world: World, stack: contextlib.ExitStack) -> None:
        self.folder, self.servers, self.setup, self.world, self.stack = folder, servers, setup, world, stack
        self.spark = servers.spark
        self.copies: dict[str, Copy] = {}
        self.off: set[str] = set()
        self.gone: dict[str, Copy] = {}
        self.unlisted: dict[str, Copy] = {}
        self.outage = False
        self.warehouses: dict[str, Database] = {}
        self._numbers = count(1)
        self.source_tables = [self._new_table(name) for name in TABLES[: self.setup.tables]]
        self.listed = self.source_tables
        whole_rows = self.setup.filtered or self.setup.partial or self.setup.mode == SCHEMA_ONLY
        self.world.begin(self.source_tables, whole_rows)
        self.kinds: list[TargetKind] = []
        self.definition = definition_of(
            self.setup, self.world.source, self._rules(setup), self.folder, f"p{os.getpid()}_{next(PROGRAMS)}"
        )
        for kind in self.setup.targets:
            self.add_target(kind)

    def _new_table(self, name: str) -> Table:
        secret = self.setup.secret
        named = {KEY, *(("s",) if secret != "plain" else ()), *((TEXT,) if secret == "include" else ())}
        table = Table(name, self.setup.text_keys, frozenset(named))
        table.shows_renames, table.truncates = self.world.shows_renames, self.world.truncates
        table.has_ids = self.world.has_ids
        self.world.create(table)
        return table

    def create_table(self) -> None:
        free = [name for name in TABLES if name not in [one.name for one in self.source_tables]]
        if not free or not self.setup.new:
            return
        table = self._new_table(free[0])
        self.source_tables.append(table)
        self.world.announce(table)
        self.set_targets(self.kinds)
        rows = self.states()
        for copy in self.copies_of(table):
            copy.grounds.add("created")
            if copy.target not in [kind.place for kind in self.kinds]:
                copy.grounds.add("target")  # the copy of another table of this name, under its first name
            former = self.gone.pop(copy.name, copy)
            copy.paused = former.paused  # an answer about another table of this name does not count
            had_copy = copy.name in rows and rows[copy.name].control is not None
            copy.new, copy.unwanted = "" if had_copy else self.setup.new, False
            if had_copy and self.setup.sensitive and self.world.has_ids:  # its columns are new ones
                table.withheld = {column.id for column in table.columns if column.name not in table.named}

    def drop_table(self, table: Table) -> None:
        if not self.setup.new or len(self.source_tables) == 1:
            return
        self.world.drop_table(table)
        self.gone |= {copy.name: copy for copy in self.copies_of(table)}
        self.source_tables.remove(table)
        self.set_targets(self.kinds)

    def _rules(self, setup: Setup) -> tuple[Any, ...]:
        if setup.new:
            return (rule_of(setup, self.world.table_name(PATTERN), "{table}"),)
        first = (self.kinds[0].name,) if setup.narrow and self.kinds else ()
        return tuple(
            rule_of(setup, self.world.table_name(one.name), one.name, first if one is self.source_tables[-1] else ())
            for one in self.listed
        )

    def add_target(self, kind: str) -> None:
        number = next(self._numbers)
        name = "default" if number == 1 and self.setup.unnamed else f"t{number}"
        if kind in SERVERS:
            schema = f"{self.definition.name}_{name}"
            self.warehouses[name] = self.stack.enter_context(new_schema(kind, self.servers.of_target(kind), schema))
        self.set_targets([*self.kinds, TargetKind(kind, name, name)])

    def rename_target(self) -> None:
        """The last one, in the YAML alone."""
        self._name_targets({self.kinds[-1].name: f"t{next(self._numbers)}"})

    def allow_features(self) -> None:
        self.set_targets([replace(one, kind=FEATURES) if one.kind == DELTA else one for one in self.kinds])

    def restore_targets(self) -> bool:
        """They have their first names again. Returns whether they had others."""
        names = {one.name: one.place for one in self.kinds}
        self._name_targets(names)
        return any(former != first for former, first in names.items())

    def _name_targets(self, names: Mapping[str, str]) -> None:
        """The copies stay where they are."""
        self.warehouses = {names.get(name, name): database for name, database in self.warehouses.items()}
        for copy in self.copies.values():
            target = names.get(copy.target, copy.target)
            copy.name, copy.target = copy.name.replace(f"@{copy.target}", f"@{target}"), target
            if copy.is_under_other_name:
                copy.grounds.add("target")
        self.copies = {copy.name: copy for copy in self.copies.values()}
        self.set_targets([replace(one, name=names.get(one.name, one.name)) for one in self.kinds])

    def set_targets(self, kinds: list[TargetKind]) -> None:
        self.kinds = kinds
        targets = tuple(target_of(one, self.folder, self._schema(one.name)) for one in kinds)
        rules = self._rules(self.setup)
        if len(targets) == 1 and targets[0].name == "default":
            self.redefine(target=targets[0], targets=(), tables=rules)
        else:
            self.redefine(target=None, targets=targets, tables=rules)
        wanted = {copy.name: copy for one in kinds for copy in self._copies_in(one.name)}
        for copy in wanted.values():
            if former := self.copies_of(copy.table):
                copy.new, copy.unwanted = former[0].new, former[0].unwanted
        # The stream begins anew with the first resync: until then no copy can begin either.
        lost = {"position"} if any("position" in copy.grounds for copy in self.copies.values()) else set()
        off = {"server"} if self.off else set()
        self.copies = {name: self.copies.get(name, copy) for name, copy in wanted.items()}
        for name, copy in self.copies.items():
            copy.history = wanted[name].history
            if copy is wanted[name]:
                copy.grounds |= lost | off

    def redefine(self, **changes: Any) -> None:
        """The definition as the loader reads it: what no YAML may have is no program."""
        self.definition = as_loaded(replace(self.definition, **changes))

    def edit(self, setup: Setup) -> None:
        """Raises DefinitionInvalid, and changes nothing."""
        self.redefine(tables=self._rules(setup), spark=Spark(engine=EngineMode(setup.engine)))
        kept_rows, set_nulls = self.setup.on_delete == "ignore" or bool(self.setup.ignore), self.setup.set_null
        marked_rows, other_secret = self.setup.on_delete == "soft", self.setup.secret != setup.secret
        other_cast = self.setup.cast != setup.cast
        self.setup = setup
        self.set_targets(self.kinds)
        for copy in self.copies.values():
            copy.setup = setup
            copy.nulls |= set_nulls
            copy.grounds.add("definition")
            copy.past = Past()
            copy.hidden_otherwise |= other_secret and (kept_rows or marked_rows)
            copy.cast_otherwise |= other_cast and copy.history != "none"
            if kept_rows:
                copy.kept |= set(copy.table.written) - set(copy.table.rows)

    def list_tables(self, count: int) -> None:
        self.listed = self.source_tables[:count]
        self.redefine(tables=self._rules(self.setup))
        known = self.copies
        self.set_targets(self.kinds)
        for name in known.keys() - self.copies.keys():
            self.unlisted[name] = known[name]
        for name in self.copies.keys() - known.keys():
            copy, former = self.copies[name], self.unlisted.pop(name, None)
            copy.grounds.add("listed")
            if former:
                copy.paused, copy.pause = former.paused, former.pause

    def _schema(self, name: str) -> str:
        return self.warehouses[name].schema if name in self.warehouses else ""

    def _copies_in(self, target: str) -> Iterator[Copy]:
        for table in self.listed:
            if self.setup.narrow and table is self.source_tables[-1] and target != self.kinds[0].name:
                continue
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

    def copy(self, number: int) -> Copy:
        names = sorted(self.copies)
        return self.copies[names[number % len(names)]]

    def states(self) -> dict[str, Any]:
        return self.replicator().state.tables(self.definition.name)

    def table(self, number: int) -> Table:
        return self.source_tables[number % len(self.source_tables)]

    def copies_of(self, table: Table) -> list[Copy]:
        return [copy for copy in self.copies.values() if copy.table is table]

    def ground(self, ground: str, table: Table | None = None) -> None:
        for copy in self.copies.values():
            if table is None or copy.table is table:
                copy.grounds.add(ground)

    def altered(self, table: Table) -> None:
        table.altered = table.writes
        self.ground("schema", table)

    def wrote(self, table: Table, *keys: Any) -> None:
        for copy in self.copies_of(table):
            for key in keys:
                copy.wrote(key)
