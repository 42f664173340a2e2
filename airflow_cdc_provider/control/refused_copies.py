"""Copies that their target cannot hold as they are now. Each target is asked once, about the copies that were read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from airflow_cdc_provider.control.each_target import ask_each_target
from airflow_cdc_provider.core.decisions.facts import TableFacts
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import UNREADABLE, Problem
from airflow_cdc_provider.targets.registry import Targets


@dataclass(frozen=True)
class RefusedCopies:
    """By copy. ``unanswered``: why its target did not answer."""

    refused: Mapping[str, Problem] = field(default_factory=dict)
    unanswered: Mapping[str, Problem] = field(default_factory=dict)


def refused_copies(targets: Targets, tables: Iterable[TableFacts], read: Collection[str]) -> RefusedCopies:
    """``read``: the copies whose state was read from their target."""

    def ask(target: str, tasks: list[TableTask]) -> RefusedCopies:
        try:
            return RefusedCopies(targets.named(target).refused(tasks))
        except UNREADABLE as error:
            return RefusedCopies(unanswered={task.table: error.problems[0] for task in tasks})

    known = (table.task for table in tables if table.task.table in read and table.problem is None)
    answers = ask_each_target(known, attrgetter("table"), ask)
    return RefusedCopies(
        {copy: problem for answer in answers for copy, problem in answer.refused.items()},
        {copy: problem for answer in answers for copy, problem in answer.unanswered.items()},
    )
