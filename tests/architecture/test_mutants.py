"""The mutants fit the product as it is; `make mutants` proves that a test kills each of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.all_mutants import MUTANTS
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.what)
def test_a_mutant_fits_its_file_and_can_be_parsed(mutant: Mutant) -> None:
    original, mutated = (ROOT / mutant.file).read_text(), mutant.mutated(ROOT)
    assert mutated != original
    if mutant.file.endswith(".py"):
        assert ast.dump(ast.parse(mutated)) != ast.dump(ast.parse(original))


@pytest.mark.parametrize("test", sorted({test for one in MUTANTS for test in one.tests}))
def test_the_tests_of_a_mutant_exist(test: str) -> None:
    file, _, name = test.partition("::")
    assert f"def {name.partition('[')[0]}" in (ROOT / file).read_text()


def test_no_mutant_is_listed_twice() -> None:
    assert len({(one.file, one.before, one.after) for one in MUTANTS}) == len({one.what for one in MUTANTS})
    assert len({one.what for one in MUTANTS}) == len(MUTANTS)


def test_a_mutant_that_does_not_fit_is_reported() -> None:
    with pytest.raises(LookupError, match="is there 0 times"):
        Mutant("nothing", "Makefile", "no such line anywhere", "", ()).mutated(ROOT)
