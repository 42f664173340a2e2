"""A measured figure and the table of them. Times on one machine are compared as ratios within one run."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """``ratio``: ours to the baseline of the same run; ``target``: the text of the target, ``reached``: whether it is
    reached. ``detail``: the raw figures."""

    what: str
    ratio: float
    unit: str
    target: str
    reached: bool
    detail: str


def seconds(action: Callable[[], object]) -> float:
    started = time.monotonic()
    action()
    return time.monotonic() - started


def alternating(rounds: int, *actions: Callable[[], float]) -> list[float]:
    """Seconds of each action, A B A B …, the median over the rounds."""
    measured: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for times, action in zip(measured, actions, strict=True):
            times.append(action())
    return [statistics.median(times) for times in measured]


def table(figures: list[Figure]) -> str:
    lines = [f"{'figure':<52} {'measured':>12}  {'target':<16} {'':<4} detail"]
    for figure in figures:
        measured = f"{figure.ratio:.2f} {figure.unit}"
        mark = "ok" if figure.reached else "miss"
        lines.append(f"{figure.what:<52} {measured:>12}  {figure.target:<16} {mark:<4} {figure.detail}")
    return "\n".join(lines)
