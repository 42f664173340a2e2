"""`make mutants`: mutation tests. Each mutant changes the product in one small way; a test must kill it.

Runs on two copies of the checkout concurrently: on one the mutants whose tests need Spark, on the other the rest. Exit
status 1: a mutant survived, so that a test is missing. 2: a mutant does not fit the product, or a test fails without
mutants.

``ONLY="words"``: only mutants whose descriptions and files contain all these words.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tests.model import seeds
from tests.mutants.all_mutants import MUTANTS
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).parents[2]
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")
LIMIT_S = 600
HISTORIES = {seeds.HISTORIES: "25"}
"""A fixed small number, so that the result for a mutant is always the same."""


class Unusable(Exception):
    """The run has no result: a mutant does not fit, or a test fails without mutants."""


@dataclass(frozen=True)
class Result:
    """``killed_by``: the first test that failed; empty where none did."""

    mutant: Mutant
    killed_by: str
    took_s: float


def main() -> int:
    arguments = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.parse_args()
    words = os.environ.get("ONLY", "").split()
    chosen = [one for one in MUTANTS if all(word in f"{one.what} {one.file}" for word in words)]
    try:
        for one in chosen:
            one.mutated(ROOT)
        with ThreadPoolExecutor(2) as pool:
            halves = ([one for one in chosen if one.needs_spark is spark] for spark in (False, True))
            results = list(chain.from_iterable(pool.map(run_all, halves)))
    except (LookupError, Unusable) as error:
        print(error)
        return 2
    survived = [result for result in results if not result.killed_by]
    print(f"\n{len(results) - len(survived)} killed, {len(survived)} survived")
    for result in survived:
        print(f"survived: {result.mutant.what} ({result.mutant.file})")
    return int(bool(survived))


def run_all(mutants: Sequence[Mutant]) -> list[Result]:
    """One after the other on a copy of the checkout."""
    with tempfile.TemporaryDirectory(prefix="cdc-mutants-") as scratch:
        copy = Path(shutil.copytree(ROOT, Path(scratch, "checkout"), ignore=NOT_COPIED))
        tests = sorted({test for one in mutants for test in one.tests})
        if tests and (red := first_failure(copy, tests)):
            raise Unusable(f"fails without mutants: {red}")
        return [run_mutant(one, copy) for one in mutants]


def run_mutant(mutant: Mutant, copy: Path) -> Result:
    file = copy / mutant.file
    whole = file.read_text()
    began = time.monotonic()
    file.write_text(mutant.mutated(copy))
    try:
        result = Result(mutant, first_failure(copy, mutant.tests), time.monotonic() - began)
    finally:
        file.write_text(whole)
    status = f"killed    {result.killed_by}" if result.killed_by else "SURVIVED"
    print(f"{result.took_s:>5.0f} s  {mutant.what:<82} {status}", flush=True)
    return result


def first_failure(copy: Path, tests: Iterable[str]) -> str:
    """The name of the first test that fails; empty where all pass. A test run that cannot be collected, or hangs,
    counts as a failure."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider", "--tb=no", *tests]
    environment = {**os.environ, **HISTORIES, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"{LIMIT_S} s exceeded"
    if run.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return failed.group(1).rpartition("/")[2] if failed else f"pytest status {run.returncode}"


if __name__ == "__main__":
    sys.exit(main())
