"""The page of cases lists every case once, with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "salesforce-cases.md"
ROWS = re.findall(r"^\| (\d+) \|.*\| (.*) \|$", PAGE.read_text(), re.MULTILINE)


def test_every_case_is_listed_once_with_the_tests_of_its_number() -> None:
    found: dict[int, set[str]] = {number: set() for number in range(1, 59)}
    for file in (*TESTS.glob("connectors/test_*.py"), *TESTS.glob("spark/pipelines/*/test_*.py")):
        for test in re.findall(r"^def (test_case_\d\d\w+)", file.read_text(), re.MULTILINE):
            for number in re.findall(r"\d\d", re.match(r"test_case_[\d_]+(?:and_\d\d)?", test)[0]):  # type: ignore[index]
                found[int(number)].add(test)
    listed = {int(number): set(re.findall(r"`(\w+)`", tests)) for number, tests in ROWS}
    assert len(ROWS) == 58
    assert listed == found
