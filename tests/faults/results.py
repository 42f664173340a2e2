"""The result of each case, a line each, so that an interrupted run can continue."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.matrix import Case


@dataclass
class Results:
    """``found``: case → its findings, for cases with findings; ``ended``: how thawed attempts ended."""

    path: Path
    times: Counter[str] = field(default_factory=Counter)
    found: dict[str, list[str]] = field(default_factory=dict)
    ended: dict[str, Counter[str]] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                self._count(json.loads(line))

    def add(self, case: Case, seconds: float, found: list[str], ended: str) -> None:
        line = {"case": str(case), "seconds": round(seconds, 1), "found": found, "ended": ended}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self._count(line)

    def _count(self, line: dict[str, object]) -> None:
        case = str(line["case"])
        self.times[case] += 1
        self.seconds += float(str(line["seconds"]))
        if line["found"]:
            self.found.setdefault(case, []).extend(line["found"])  # type: ignore[arg-type]
        if line["ended"]:
            self.ended.setdefault(case, Counter())[str(line["ended"])] += 1
