"""`docs/fault-report.md`: what was struck, how often, and what was found."""

from __future__ import annotations

import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from tests.faults.matrix import WHAT, Case, Place, cases
from tests.faults.results import Results

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "fault-report.md"
FOUND = Path(__file__).with_name("found.md")
PACKAGES = ("apache-airflow", "pyspark", "delta-spark", "deltalake", "pyiceberg", "psycopg", "PyMySQL")

HEAD = """\
# Fault report

Written by `make faults` on {date}, seed {seed}; the same seed does the same again, in the same order.

Every place of the product that has an effect, or stands between two, is struck: a process killed or stopped there, an
answer lost with or without its effect, a disk that is full. The source is written to all the while. What is struck is a
real process: a driver started by `spark-submit`, or a worker's Python. Then the step is tried again as Airflow would
do it, and after each strike, and again when all is at rest, a checker that shares no code with the product reads the
source, every commit of the copies, the change log and the state store, and holds them against a ledger of what the
writer did. That the checker sees what it is meant to see is proved by damages planted one at a time
(`tests/faults/test_a_checker.py`).

What was stopped is woken only after others have done its work: it must end within a minute and commit nothing.

**{done} of {all} cases, {strikes} strikes, {bad} with a finding**, in {hours:.1f} h on {machine}.
{versions}.
"""

ACTIONS = "\n".join(f"- **{name}**: {what}" for name, what in WHAT.items())

TABLE = """
## What was struck

{actions}

Figures are strikes; a dash: the pair has no meaning there. Cases are done several in one run of the DAG where they can
be, one per task; where such a run finds anything, each of its cases is done again alone.

| place | it stands for | step | target | {names} | found |
|---|---|---|---|{rule}---|
"""

WOKEN = """
## How what was stopped ended

| ended | times |
|---|---|
"""


def write(results: Results, seed: int, airflow: Sequence[str]) -> None:
    """``airflow``: what became of the tests on a real Airflow, a line each."""
    known = {str(case): case for case in cases()}
    done = [name for name in known if results.times[name]]
    head = HEAD.format(
        date=f"{datetime.now(UTC):%d %B %Y}",
        seed=seed,
        done=len(done),
        all=len(known),
        strikes=sum(results.times[name] for name in done),
        bad=len(results.found),
        hours=results.seconds / 3600,
        machine=_machine(),
        versions=", ".join(f"{name} {version(name)}" for name in PACKAGES),
    )
    names = " | ".join(WHAT)
    table = TABLE.format(actions=ACTIONS, names=names, rule="---|" * len(WHAT))
    rows = "\n".join(_rows(list(known.values()), results))
    found = "\n".join(f"- {name}: {what[0]}" for name, what in sorted(results.found.items())) or "Nothing."
    parts = [head, f"\n## What was found\n\n{found}\n", f"\n{FOUND.read_text()}", table + rows + "\n"]
    parts += [WOKEN + "\n".join(_woken(results)) + "\n", _on_airflow(airflow)]
    PAGE.write_text("".join(parts))


def _rows(known: list[Case], results: Results) -> Iterator[str]:
    def line(case: Case) -> tuple[Place, str, str]:
        return case.place, case.step, case.target

    for (place, step, target), group in groupby(known, key=line):
        of = {case.action: str(case) for case in group}
        cells = [str(results.times[of[name]]) if name in of else "-" for name in WHAT]
        found = sum(len(results.found.get(name, ())) > 0 for name in of.values())
        yield f"| `{place.name}` | {place.what} | {step} | {target} | {' | '.join(cells)} | {found or ''} |"


def _woken(results: Results) -> Iterator[str]:
    total: Counter[str] = Counter()
    for ended in results.ended.values():
        for how, times in ended.items():
            total[", ".join(sorted({part.split(" ")[-1] for part in how.split(", ")})) or how] += times
    for how, times in total.most_common():
        yield f"| {how} | {times} |"


def _on_airflow(lines: Sequence[str]) -> str:
    told = "\n".join(f"- {line}" for line in lines) or "Not run this time."
    return f"\n## On a real Airflow\n\n{told}\n"


def _machine() -> str:
    cpus = os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.split('"')
    return f"{cpus} cores, {memory} GiB, {platform.system()}, Python {platform.python_version()}, Java {java[1]}"
