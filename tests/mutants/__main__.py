"""`make mutants`: break the product in one small way after the other, and see that a test notices each.

Works on two copies of the checkout side by side: on one what needs Spark, on the other the rest. Exit status 1: no test
noticed a breakage, so one is missing. 2: a breakage fits the product no more, or a test fails without any.

``ONLY="words"``: breakages whose text and file hold them all.
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
from tests.mutants.breakage import Breakage
from tests.mutants.breakages import BREAKAGES

ROOT = Path(__file__).parents[2]
LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")
LIMIT_S = 600
HISTORIES = {seeds.HISTORIES: "25"}
"""Always the same ones, few, and enough: a breakage is caught or not, whoever asks."""


class Unusable(Exception):
    """The run can say nothing: a breakage does not fit, or a test is red before anything was broken."""


@dataclass(frozen=True)
class Verdict:
    """``noticed_by``: the first test that failed; empty where none did."""

    breakage: Breakage
    noticed_by: str
    took_s: float


def main() -> int:
    arguments = argparse.ArgumentParser(
        prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.parse_args()
    words = os.environ.get("ONLY", "").split()
    chosen = [one for one in BREAKAGES if all(word in f"{one.what} {one.file}" for word in words)]
    try:
        for one in chosen:
            one.broken(ROOT)
        with ThreadPoolExecutor(2) as pool:
            halves = ([one for one in chosen if one.needs_spark is spark] for spark in (False, True))
            verdicts = list(chain.from_iterable(pool.map(judge_all, halves)))
    except (LookupError, Unusable) as error:
        print(error)
        return 2
    survived = [verdict for verdict in verdicts if not verdict.noticed_by]
    print(f"\n{len(verdicts) - len(survived)} caught, {len(survived)} survived")
    for verdict in survived:
        print(f"survived: {verdict.breakage.what} ({verdict.breakage.file})")
    return int(bool(survived))


def judge_all(breakages: Sequence[Breakage]) -> list[Verdict]:
    """One after the other on a copy of their own."""
    with tempfile.TemporaryDirectory(prefix="cdc-mutants-") as scratch:
        copy = Path(shutil.copytree(ROOT, Path(scratch, "checkout"), ignore=LEFT_OUT))
        tests = sorted({test for one in breakages for test in one.tests})
        if tests and (red := first_failure(copy, tests)):
            raise Unusable(f"fails without any breakage: {red}")
        return [judge(one, copy) for one in breakages]


def judge(breakage: Breakage, copy: Path) -> Verdict:
    file = copy / breakage.file
    whole = file.read_text()
    began = time.monotonic()
    file.write_text(breakage.broken(copy))
    try:
        verdict = Verdict(breakage, first_failure(copy, breakage.tests), time.monotonic() - began)
    finally:
        file.write_text(whole)
    noticed = f"caught    {verdict.noticed_by}" if verdict.noticed_by else "SURVIVED"
    print(f"{verdict.took_s:>5.0f} s  {breakage.what:<82} {noticed}", flush=True)
    return verdict


def first_failure(copy: Path, tests: Iterable[str]) -> str:
    """The name of the first test that fails; empty where all pass. A suite that cannot even be collected, or hangs, has
    noticed too."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=no", *tests]
    environment = {**os.environ, **HISTORIES, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return f"{LIMIT_S} s that were not enough"
    if run.returncode == 0:
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    return failed.group(1).rpartition("/")[2] if failed else f"pytest status {run.returncode}"


if __name__ == "__main__":
    sys.exit(main())
