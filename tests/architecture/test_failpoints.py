"""The fault matrix contains every failpoint of the code, and the checker shares no code with the product."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from airflow_cdc_provider.logstore import source_of
from tests.faults.breakpoints import BREAKPOINTS
from tests.faults.leaving import FAILPOINTS as OF_COMMANDS
from tests.faults.matrix import FAILPOINTS, cases

REPOSITORY = Path(__file__).parents[2]
CALL = re.compile(r"failpoint\((.*?)\)")


def test_the_names_in_the_code_are_those_of_the_matrix() -> None:
    code = [path for room in ("airflow_cdc_provider", "spark_jobs") for path in (REPOSITORY / room).rglob("*.py")]
    found = {word for path in code if path.name != "failpoints.py" for word in CALL.findall(path.read_text())}
    assert all(word.startswith('"') for word in found), "the name of a failpoint must be a literal"
    of_commands = {name for names in OF_COMMANDS.values() for name in names}
    assert sorted([*(word.strip('"') for word in found), *BREAKPOINTS]) == sorted(
        [*(failpoint.name for failpoint in FAILPOINTS), *of_commands]
    )


@pytest.mark.parametrize("name", BREAKPOINTS)
def test_a_breakpoint_finds_its_statement(name: str) -> None:
    breakpoint = BREAKPOINTS[name]
    assert source_of(breakpoint.store).read_text().count(breakpoint.before) == 1


def test_every_failpoint_has_a_case() -> None:
    assert {failpoint.name for failpoint in FAILPOINTS} == {case.failpoint.name for case in cases()}


def test_no_two_cases_are_the_same() -> None:
    names = [str(case) for case in cases()]
    assert len(names) == len(set(names))


def test_the_checker_imports_nothing_of_the_product() -> None:
    for path in (REPOSITORY / "tests" / "faults" / "checker").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            ours = [name for name in names if name.split(".")[0] in ("airflow_cdc_provider", "spark_jobs", "tests")]
            assert all(name.startswith("tests.faults.checker") for name in ours), f"{path.name}: {ours}"
