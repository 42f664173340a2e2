"""Groups the cases that share one run of the DAG: at most one case per task, all on one target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.faults.matrix import ALL, COMBINED, Case
from tests.faults.workloads import STREAM, WORKLOADS


@dataclass(frozen=True)
class CaseGroup:
    """``cases``, each with the task into which it is injected."""

    workload: str
    target: str
    cases: tuple[tuple[str, Case], ...]


def group_cases(cases: Iterable[Case]) -> list[CaseGroup]:
    """Few runs for many cases: cases of the stream join other groups where they can."""
    left = list(cases)
    found = []
    while left:
        group = _next(left)
        taken = {case for _, case in group.cases}
        left = [case for case in left if case not in taken]
        found.append(group)
    return found


def single_case(case: Case) -> CaseGroup:
    workload = _workload_of(case)
    return CaseGroup(workload, case.target, ((_task(workload, case), case),))


def _next(left: list[Case]) -> CaseGroup:
    first = min(left, key=lambda case: ((*ALL, *COMBINED).index(case.target), _workload_of(case) == "stream"))
    name = _workload_of(first)
    workload = WORKLOADS[name]
    taken: dict[object, Case] = {}
    same_target = [case for case in left if case.target == first.target]
    own = [case for case in same_target if _workload_of(case) == name]
    others = [case for case in same_target if workload.shared and _workload_of(case) == "stream"]
    for case in (*own, *(others if name != "stream" else ())):
        if not workload.series:
            taken.setdefault(_task(name, case), case)
        elif len(taken) < workload.series:
            taken[case] = case
    return CaseGroup(name, first.target, tuple((_task(name, case), case) for case in taken.values()))


def _workload_of(case: Case) -> str:
    return next((name for name, workload in WORKLOADS.items() if case.step in workload.tasks), "stream")


def _task(workload: str, case: Case) -> str:
    return WORKLOADS[workload].tasks.get(case.step) or STREAM[case.step]
