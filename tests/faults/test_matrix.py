"""Some cases of the fault matrix; ``make faults`` and ``make nightly`` run all of them.

The groups of each target have a fixed order; the seed determines the first one.
"""

from __future__ import annotations

import random

import pytest

from tests.faults.grouping import CaseGroup, group_cases
from tests.faults.matrix import COMBINED, DATABASES, LAKES, cases
from tests.faults.runner import FaultRunner

pytestmark = [pytest.mark.jvm, pytest.mark.server]

CASES = 2
"""Of each kind of target, at least. A database, and combined targets, are in the nightly tests alone."""


def chosen(target: str, seed: int) -> list[CaseGroup]:
    """Enough groups for so many cases."""
    found = group_cases(case for case in cases() if case.target == target)
    random.Random(CASES).shuffle(found)
    start = seed % len(found)
    taken: list[CaseGroup] = []
    for group in found[start:] + found[:start]:
        if sum(len(one.cases) for one in taken) < CASES:
            taken.append(group)
    return taken


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param(LAKES, id="lake"),
        pytest.param(DATABASES, id="database", marks=pytest.mark.nightly),
        pytest.param(tuple(COMBINED), id="combined", marks=pytest.mark.nightly),
    ],
)
def test_the_copies_stay_correct_after_any_fault(runner: FaultRunner, seed: int, targets: tuple[str, ...]) -> None:
    mixed = random.Random(seed).sample(targets, len(targets))
    target = next(one for one in mixed if runner.servers.can_start(one))
    for group in chosen(target, seed):
        outcome = runner.run(group)
        names = [str(case) for _, case in group.cases]
        print(f"{outcome.seconds:.0f} s", *names, sep="\n    ")
        assert not outcome.findings, "\n".join([*names, *outcome.findings])
        assert len(group.cases) > 1 or outcome.ended, f"{names} was not reached"
    runner.close()
    assert runner.unsettled == []
