"""Copies that their target cannot hold as they are now. Each target is asked once, about the copies that were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from airflow_cdc_provider.core.decisions.facts import TableFacts
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import UNREADABLE, Problem
from airflow_cdc_provider.core.table.copies import target_of_copy
from airflow_cdc_provider.targets.registry import Targets


@dataclass(frozen=True)
class RefusedCopies:
    """By copy. ``unanswered``: why its target did not answer."""

    refused: Mapping[str, Problem] = field(default_factory=dict)
    unanswered: Mapping[str, Problem] = field(default_factory=dict)


def refused_copies(targets: Targets, tables: Iterable[TableFacts], read: Collection[str]) -> RefusedCopies:
    """``read``: the copies whose state was read from their target."""
    by_target = defaultdict[str, list[TableTask]](list)
    for table in tables:
        if table.task.table in read and table.problem is None:
            by_target[target_of_copy(table.task.table)].append(table.task)

    def ask(target: str) -> RefusedCopies:
        try:
            return RefusedCopies(targets.named(target).refused(by_target[target]))
        except UNREADABLE as error:
            return RefusedCopies(unanswered={task.table: error.problems[0] for task in by_target[target]})

    if not by_target:
        return RefusedCopies()
    with ThreadPoolExecutor(len(by_target)) as pool:
        answers = list(pool.map(ask, by_target))
    return RefusedCopies(
        {copy: problem for answer in answers for copy, problem in answer.refused.items()},
        {copy: problem for answer in answers for copy, problem in answer.unanswered.items()},
    )
