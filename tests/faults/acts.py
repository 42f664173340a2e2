"""Which cases are done in one run: at most one per task, all on one target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tests.faults.matrix import ALL, Case
from tests.faults.scenes import SCENES, STREAM


@dataclass(frozen=True)
class Act:
    """``cases`` with the task that each is struck in."""

    scene: str
    target: str
    cases: tuple[tuple[str, Case], ...]


def acts(cases: Iterable[Case]) -> list[Act]:
    """Few runs for many cases: those of the stream go along with the others where they can."""
    left = list(cases)
    found = []
    while left:
        act = _next(left)
        taken = {case for _, case in act.cases}
        left = [case for case in left if case not in taken]
        found.append(act)
    return found


def alone(case: Case) -> Act:
    scene = _scene_of(case)
    return Act(scene, case.target, ((_task(scene, case), case),))


def _next(left: list[Case]) -> Act:
    first = min(left, key=lambda case: (ALL.index(case.target), _scene_of(case) == "stream"))
    name = _scene_of(first)
    scene = SCENES[name]
    taken: dict[object, Case] = {}
    here = [case for case in left if case.target == first.target]
    own = [case for case in here if _scene_of(case) == name]
    others = [case for case in here if scene.shared and _scene_of(case) == "stream"]
    for case in (*own, *(others if name != "stream" else ())):
        if not scene.series:
            taken.setdefault(_task(name, case), case)
        elif len(taken) < scene.series:
            taken[case] = case
    return Act(name, first.target, tuple((_task(name, case), case) for case in taken.values()))


def _scene_of(case: Case) -> str:
    return next((name for name, scene in SCENES.items() if case.step in scene.tasks), "stream")


def _task(scene: str, case: Case) -> str:
    return SCENES[scene].tasks.get(case.step) or STREAM[case.step]
