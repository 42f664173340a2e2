"""Random programs, and what they show."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from airflow_cdc_provider.core.errors import CdcError
from tests.programs.draw import FEATURES_OF_PROGRAMS, programs
from tests.programs.findings import Finding
from tests.programs.life import Servers
from tests.programs.program import Program
from tests.programs.shorten import shortened
from tests.programs.whole import run_program

EACH = 12
"""Programs that are drawn together. The first of them is the simplest one."""


@dataclass(frozen=True)
class Found:
    """``seed``: of the programs that were drawn together."""

    seed: str
    finding: Finding
    program: Program

    def __str__(self) -> str:
        return f"{self.finding.kind} (seed {self.seed})\n  {self.finding.detail}\n  {self.program}"


def wanted() -> tuple[str, ...]:
    """The features that meet in each program, where somebody searches near them: ``FEATURES="questions several"``."""
    names = tuple(os.environ.get("FEATURES", "").split())
    if unknown := set(names) - FEATURES_OF_PROGRAMS.keys():
        raise SystemExit(f"no features: {', '.join(sorted(unknown))}; there are {', '.join(FEATURES_OF_PROGRAMS)}")
    return names


def drawn(seed: str) -> list[Program]:
    found: list[Program] = []

    @seeded(seed)
    @settings(
        max_examples=EACH,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=False,
    )
    @given(programs(wanted()))
    def draw(program: Program) -> None:
        found.append(program)

    draw()
    return found


def show(program: Program, servers: Servers) -> Finding | None:
    try:
        run_program(program, servers)
    except Finding as finding:
        return finding
    except CdcError as error:
        return Finding("refused", str(error))
    return None


def explore(seed: str, servers: Servers, known: set[str], shorten: bool = True) -> Iterator[Found]:
    """The findings of the programs of one seed. ``known``: signatures that are not shown again; new ones are added."""
    for program in drawn(seed):
        finding = show(program, servers)
        if finding is None or finding.signature in known:
            continue
        known.add(finding.signature)
        if shorten:
            program, finding = shortened(program, finding, lambda one: show(one, servers))
            known.add(finding.signature)
        yield Found(seed, finding, program)
