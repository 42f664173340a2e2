"""A program that shows a finding, made shorter as long as it still shows one of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

from tests.programs.findings import Finding
from tests.programs.program import Program, Setup, Transaction

Shows = Callable[[Program], Finding | None]


def shortened(program: Program, finding: Finding, shows: Shows) -> tuple[Program, Finding]:
    """``shows``: what a program shows. First whole parts of the acts go, then single ones, then transactions, then keys
    of the setup."""
    size = max(1, len(program.acts) // 2)
    while True:
        smaller = next(_still(finding, _without_acts(program, size), shows), None)
        if smaller:
            program, finding = smaller
        elif size > 1:
            size //= 2
        else:
            break
    if alone := next(_still(finding, _without_transactions(program), shows), None):
        return shortened(*alone, shows)
    for setup in _plainer(program.setup):
        plainer = replace(program, setup=replace(program.setup, **setup))
        program, finding = next(_still(finding, iter([plainer]), shows), (program, finding))
    return program, finding


def _still(finding: Finding, smaller: Iterator[Program], shows: Shows) -> Iterator[tuple[Program, Finding]]:
    for one in smaller:
        found = shows(one)
        if found is not None and found.kind == finding.kind:
            yield one, found


def _without_acts(program: Program, size: int) -> Iterator[Program]:
    acts = program.acts
    for start in range(len(acts) - size, -1, -size):
        yield replace(program, acts=acts[:start] + acts[start + size :])


def _without_transactions(program: Program) -> Iterator[Program]:
    """With the writes of one transaction on their own."""
    for number, act in enumerate(program.acts):
        if isinstance(act, Transaction):
            yield replace(program, acts=(*program.acts[:number], *act.writes, *program.acts[number + 1 :]))


def _plainer(setup: Setup) -> Iterator[dict[str, object]]:
    for number in range(len(setup.targets) - 1, -1, -1):
        if len(setup.targets) > 1:
            yield {"targets": setup.targets[:number] + setup.targets[number + 1 :]}
    for one in fields(Setup):
        if getattr(setup, one.name) != one.default:
            yield {one.name: one.default}
