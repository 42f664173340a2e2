"""What runs at the moment, in lines that move. Only a terminal shows them; a pipe gets the other lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text


@dataclass
class Progress:
    """``doing``: by name of what is watched, what it does and since when."""

    console: Console
    doing: dict[str, tuple[str, float]] = field(default_factory=dict)

    @contextmanager
    def shown(self) -> Iterator[None]:
        with self.console.status(self):
            yield

    def tell(self, name: str, text: str) -> None:
        """Says it from now on; the clock goes on while the text is the same."""
        if self.doing.get(name, ("", 0.0))[0] != text:
            self.doing[name] = (text, time.monotonic())

    def end(self, name: str) -> None:
        self.doing.pop(name, None)

    def __rich__(self) -> Text:
        now = time.monotonic()
        lines = [f"{name}: {text}, {now - since:.0f} s" for name, (text, since) in self.doing.copy().items()]
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")
