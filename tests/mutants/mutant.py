"""One small change of the product that a test must detect."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SPARK_TESTS = (
    "tests/spark/contract",
    *(
        f"tests/spark/test_{name}"
        for name in (
            "delta_direct",
            "fold",
            "merge",
            "plain",
            "keyless",
            "double",
            "unordered",
            "quarantine",
            "histories",
            "bigquery",
            "redshift",
            "snowflake",
            "spanner",
            "statement_settings",
        )
    ),
)


@dataclass(frozen=True)
class Mutant:
    """``before`` is exactly once in the file; ``after`` replaces it. ``tests``: those that must kill it."""

    what: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def needs_spark(self) -> bool:
        return any(test.startswith(SPARK_TESTS) for test in self.tests)

    def mutated(self, root: Path) -> str:
        """The text of the file with the change. Raises LookupError where it does not fit the file."""
        whole = (root / self.file).read_text()
        count = whole.count(self.before)
        if count != 1:
            raise LookupError(f"{self.file}: the text that '{self.what}' changes is there {count} times")
        return whole.replace(self.before, self.after)
