"""The problems of a replicator that its definition, its source and its target have. Reads only, except for the trial
writes of a target's check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from airflow_cdc_provider.connectors.copied.reading import source_task, source_tasks
from airflow_cdc_provider.connectors.source import SourceConnector
from airflow_cdc_provider.control.described_tables import described_tables, other_kinds
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import CdcError, Problem
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.spec.other_kinds import OtherKind
from airflow_cdc_provider.core.spec.selection import left_out, select
from airflow_cdc_provider.core.spec.target_tables import schema_collisions
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.targets.registry import Targets


@dataclass(frozen=True)
class Examination:
    """``described``: all tables of the source. ``tasks``: the tables that a run would copy. ``problems``: each once.
    ``left_out``: what patterns match beside tables."""

    described: tuple[TableSchema, ...]
    tasks: tuple[TableTask, ...]
    problems: tuple[Problem, ...]
    left_out: tuple[Problem, ...] = ()


def examine(
    definition: Definition,
    source: SourceConnector,
    targets: Targets,
    target_exists: bool = True,
    hash_key: bytes = b"",
    describe: Callable[[], Iterable[TableSchema]] | None = None,
) -> Examination:
    """``target_exists``: False if the target of the definition is only an example, and is not checked. ``hash_key``:
    the key of hashes. ``describe``: the tables of the source, if there are copies that know more about them."""
    described, others = list[TableSchema](), dict[str, OtherKind]()
    problems = problems_of(lambda: described.extend((describe or source.tables)()))
    tasks: list[TableTask] = []
    if not problems:
        problems += problems_of(lambda: others.update(other_kinds(source)))
        selections, found = select(definition, described, targets.table_name, hash_key, others)
        problems += [*found, *schema_collisions(selections)]
        tasks += [selection.task(TableState.PENDING) for selection in selections]
    problems += problems_of(lambda: source.check([*map(source_task, source_tasks(tasks))]))
    for name in targets if target_exists else ():
        own = [task for task in tasks if target_of_copy(task.table) == name]
        problems += problems_of(partial(_check, targets, name, own))
    return Examination(tuple(described), tuple(tasks), distinct(problems), left_out(definition, described, others))


def examine_replicator(replicator: Replicator) -> Examination:
    """What ``check`` says of it: the tables are those that its runs see."""
    describe = partial(described_tables, replicator, replicator.state.tables(replicator.name))
    return examine(
        replicator.definition, replicator.source, replicator.targets, hash_key=replicator.hash_key, describe=describe
    )


def _check(targets: Targets, name: str, tasks: Sequence[TableTask]) -> list[Problem]:
    return targets.named(name).check(tasks)


def problems_of(check_system: Callable[[], Iterable[Problem] | None]) -> list[Problem]:
    """The problems of one system. A system that cannot be checked is a problem too, and does not hide the others."""
    try:
        return list(check_system() or ())
    except CdcError as error:
        return list(error.problems)


def distinct(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple({(problem.code, problem.where, problem.what): problem for problem in problems}.values())
