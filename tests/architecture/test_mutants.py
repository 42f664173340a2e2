"""The mutants fit the product as it is; `make mutants` then shows that each of them is noticed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.breakage import Breakage
from tests.mutants.breakages import BREAKAGES

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda one: one.what)
def test_a_breakage_fits_its_file_and_leaves_a_program(breakage: Breakage) -> None:
    whole, broken = (ROOT / breakage.file).read_text(), breakage.broken(ROOT)
    assert broken != whole
    if breakage.file.endswith(".py"):
        assert ast.dump(ast.parse(broken)) != ast.dump(ast.parse(whole))


@pytest.mark.parametrize("test", sorted({test for one in BREAKAGES for test in one.tests}))
def test_what_is_to_notice_a_breakage_is_there(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name.partition('[')[0]}" in (ROOT / file).read_text()


def test_no_breakage_is_told_twice() -> None:
    assert len({(one.file, one.before, one.after) for one in BREAKAGES}) == len({one.what for one in BREAKAGES})
    assert len({one.what for one in BREAKAGES}) == len(BREAKAGES)


def test_a_breakage_whose_place_is_gone_says_so() -> None:
    with pytest.raises(LookupError, match="stands there 0 times"):
        Breakage("nothing", "Makefile", "no such line anywhere", "", ()).broken(ROOT)
