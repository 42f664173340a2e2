"""Creates the targets of a definition from their type names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from threading import Lock
from typing import cast

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.errors import CommandRefused, raise_problems
from airflow_cdc_provider.core.registry import load_class
from airflow_cdc_provider.core.spec.definition import Definition, Target
from airflow_cdc_provider.core.table.copies import source_table, target_of_copy
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.targets import NAMING, TARGETS
from airflow_cdc_provider.targets.target import TargetState, TargetTables

TableNaming = Callable[[str], str]
"""The function of a target's type that derives the name of a target table from that of a source table."""


def table_naming(kind: str) -> TableNaming:
    return cast(TableNaming, load_class("target", kind, NAMING, "targets.naming"))


class Targets:
    """The targets of a replicator, in the order of its definition. Each is created on first use, and no method connects
    to one. ``create`` raises CheckFailed if the connection of the target cannot be used. ``naming``: by type."""

    def __init__(
        self,
        definition: Definition,
        create: Callable[[Target], TargetTables],
        naming: Callable[[str], TableNaming] = table_naming,
    ) -> None:
        self._targets = {target.name: target for target in definition.all_targets}
        self._create = create
        self._naming = cache(naming)
        self._created: dict[str, TargetTables] = {}
        self._lock = Lock()

    def __iter__(self) -> Iterator[str]:
        """Their names."""
        return iter(self._targets)

    def has(self, copy: str) -> bool:
        """Whether the definition still lists the target of a copy."""
        return target_of_copy(copy) in self._targets

    def named(self, name: str) -> TargetTables:
        with self._lock:
            if name not in self._created:
                self._created[name] = self._create(self._targets[name])
            return self._created[name]

    def of(self, copy: str) -> TargetTables:
        """The target of a copy. Raises CommandRefused (CMD045) if the definition does not list it any more."""
        if not self.has(copy):
            raise CommandRefused.of(
                "CMD045",
                f"the YAML does not list the target of {copy}",
                where=copy,
                found=f"target {target_of_copy(copy)}",
                allowed=", ".join(self._targets),
                do="add the target to `targets` again; its copies stay where they are",
            )
        return self.named(target_of_copy(copy))

    def state(self, copy: str, target_table: str) -> TargetState:
        """As ``TargetTables.state`` of the target of the copy. Raises CommandRefused (CMD045) as ``of``."""
        return self.of(copy).state(copy, target_table)

    def table_name(self, copy: str) -> str:
        """The default name of the table of a copy. No target is created for it: the names of all copies are known, also
        of those whose target cannot be used."""
        return self._naming(self._targets[target_of_copy(copy)].type)(source_table(copy))

    @property
    def only(self) -> TargetTables:
        """Of a definition that has one target."""
        (name,) = self._targets
        return self.named(name)


def open_targets(definition: Definition, secrets: Secrets, log: ChangeLog) -> Targets:
    """The connection of a stage is the last argument of a class that has one."""

    def create(target: Target) -> TargetTables:
        kind, own = load_class("target", target.type, TARGETS), secrets.of_target(target.name)
        raise_problems(own.problems)
        stage = [own.stage] if getattr(kind, "has_stage", False) else []
        return cast(TargetTables, kind(target, own.target, definition.name, log, *stage))

    return Targets(definition, create)
