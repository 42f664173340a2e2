"""A dozen cases of the matrix; ``make faults`` and ``make nightly`` do them all.

The acts of each target stand in a fixed order, and the seed says at which of them a run of the tests begins.
"""

from __future__ import annotations

import random

import pytest

from tests.faults.acts import Act, acts
from tests.faults.matrix import DATABASES, LAKES, cases
from tests.faults.performing import Theatre

pytestmark = [pytest.mark.jvm, pytest.mark.server]

CASES = 6
"""Of a lake and of a database."""


def chosen(target: str, seed: int) -> list[Act]:
    """As many acts as hold half a dozen cases."""
    found = acts(case for case in cases() if case.target == target)
    random.Random(CASES).shuffle(found)
    start = seed % len(found)
    taken: list[Act] = []
    for act in found[start:] + found[:start]:
        if sum(len(one.cases) for one in taken) < CASES:
            taken.append(act)
    return taken


@pytest.mark.parametrize("targets", [LAKES, DATABASES], ids=["lake", "database"])
def test_whatever_is_struck_the_copies_stay_true(stage: Theatre, seed: int, targets: tuple[str, ...]) -> None:
    target = random.Random(seed).choice([one for one in targets if one != "mysql" or stage.mariadb])
    for act in chosen(target, seed):
        outcome = stage.perform(act)
        names = [str(case) for _, case in act.cases]
        print(f"{outcome.seconds:.0f} s", *names, sep="\n    ")
        assert not outcome.found, "\n".join([*names, *outcome.found])
        assert len(act.cases) > 1 or outcome.ended, f"{names} was not come to"
    stage.close()
    assert stage.unsettled == []
