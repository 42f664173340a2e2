"""One small breakage of the product."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ON_THE_SQL = (
    "tests/spark/contract",
    *(
        f"tests/spark/test_{name}"
        for name in ("delta_direct", "fold", "merge", "plain", "keyless", "double", "unordered", "quarantine")
    ),
)


@dataclass(frozen=True)
class Breakage:
    """``before`` stands exactly once in the file; ``after`` takes its place. ``tests``: where it must be noticed."""

    what: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def needs_spark(self) -> bool:
        return any(test.startswith(ON_THE_SQL) for test in self.tests)

    def broken(self, root: Path) -> str:
        """The file's text with the breakage in it. Raises LookupError where it fits the file no more."""
        whole = (root / self.file).read_text()
        if whole.count(self.before) != 1:
            raise LookupError(f"{self.file}: what '{self.what}' breaks stands there {whole.count(self.before)} times")
        return whole.replace(self.before, self.after)
