"""Every interleaving of a small state machine, breadth first: the shortest trace to a broken rule, if there is one."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Machine(Protocol[S]):
    """``moves``: the possible next steps, each with its description and the state after it. ``wrong``: the rule that a
    state breaks, empty where there is none."""

    def start(self) -> S: ...

    def moves(self, state: S) -> Iterable[tuple[str, S]]: ...

    def wrong(self, state: S) -> str: ...


@dataclass(frozen=True)
class Explored:
    """``states``: the number of states reached. ``wrong``: the first broken rule; ``trace``: the moves that lead to
    it."""

    states: int
    wrong: str = ""
    trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.wrong:
            return f"{self.states:,} states, nothing wrong"
        return "\n".join([*(f"{number:>3} {text}" for number, text in enumerate(self.trace, 1)), f"  → {self.wrong}"])


def explore(machine: Machine[S], limit: int = 500_000) -> Explored:
    """Raises RuntimeError where the machine has more than ``limit`` states."""
    start = machine.start()
    came: dict[S, tuple[S, str] | None] = {start: None}
    todo = deque([start])
    while todo:
        state = todo.popleft()
        if wrong := machine.wrong(state):
            return Explored(len(came), wrong, _trace(came, state))
        for text, after in machine.moves(state):
            if after not in came:
                came[after] = (state, text)
                todo.append(after)
        if len(came) > limit:
            raise RuntimeError(f"more than {limit:,} states")
    return Explored(len(came))


def _trace(came: dict[S, tuple[S, str] | None], state: S) -> tuple[str, ...]:
    texts = []
    while (step := came[state]) is not None:
        state, text = step
        texts.append(text)
    return tuple(reversed(texts))
