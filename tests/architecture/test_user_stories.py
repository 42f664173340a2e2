"""Every row of docs/stories.md says whether it is met, and links tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "stories.md"
ROWS = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if re.match(r"\| \d", line)]
TEST = re.compile(r"\[`(test_\w+)`\]\((\S+?\.py)\)")


def test_no_number_is_missing() -> None:
    numbers = {int(number) for row in ROWS for number in row[0].split(", ")}
    assert numbers == set(range(1, 33))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_a_row_says_whether_it_is_met_and_links_tests_that_exist(row: list[str]) -> None:
    _, _, met, by, shown_by = row
    assert met in ("yes", "partly", "no") and by
    tests = TEST.findall(shown_by)
    assert tests
    for name, file in tests:
        assert f"\ndef {name}(" in (PAGE.parent / file).read_text(), name
