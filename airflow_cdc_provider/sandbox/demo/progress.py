"""Status lines for what runs at the moment. Only a terminal shows them; a pipe gets the log lines alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text


@dataclass
class Progress:
    """``doing``: by name, the current activity and its start."""

    console: Console
    doing: dict[str, tuple[str, float]] = field(default_factory=dict)

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self.console.status(self):
            yield

    def show(self, name: str, text: str) -> None:
        """Show this activity from now on. The elapsed time restarts when the text changes."""
        if self.doing.get(name, ("", 0.0))[0] != text:
            self.doing[name] = (text, time.monotonic())

    def end(self, name: str) -> None:
        self.doing.pop(name, None)

    def __rich__(self) -> Text:
        now = time.monotonic()
        lines = [f"{name}: {text}, {now - since:.0f} s" for name, (text, since) in self.doing.copy().items()]
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
