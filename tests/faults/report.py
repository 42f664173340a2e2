"""Writes `docs/fault-report.md`: the cases, the number of injections of each, and the findings."""

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

from tests.faults.matrix import ACTION_TEXTS, Case, Failpoint, cases
from tests.faults.results import Results

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "fault-report.md"
FIXED_DEFECTS = Path(__file__).with_name("fixed_defects.md")
PACKAGES = ("apache-airflow", "pyspark", "delta-spark", "deltalake", "pyiceberg", "psycopg", "PyMySQL")

HEAD = """\
# Fault report

Written by `make faults` on {date}, seed {seed}. The same seed runs the same cases in the same order.

Failpoints surround every operation of the product that has an effect. At each of them a fault is injected: a process is
killed or stopped, a request or its answer is lost, the disk is full. A writer changes the source during all cases. The
fault hits a real process: a driver started by `spark-submit`, or the Python process of a worker. Then the step is tried
again as Airflow would try it. After each injection, and again when every table has caught up, a checker that shares no
code with the product reads the source, every commit of the copies, the change log and the state store, and compares
them with a ledger of the transactions of the writer. Single corruptions of a copied replicator prove that the checker
detects each violated invariant (`tests/faults/test_a_checker.py`).

A frozen attempt continues only after another attempt has finished its step: it must end within a minute and commit
nothing.

**{done} of {all} cases, {injections} injections, {bad} with a finding**, in {hours:.1f} h on {machine}.
{versions}.
"""

ACTION_LIST = "\n".join(f"- **{name}**: {what}" for name, what in ACTION_TEXTS.items())

TABLE = """
## Cases

{actions}

Figures are injections; a dash marks a combination that does not occur. Several cases share one run of the DAG where
possible, one per task; where such a run has a finding, each of its cases runs again alone.

| failpoint | meaning | step | target | {names} | findings |
|---|---|---|---|{rule}---|
"""

FROZEN = """
## How frozen attempts ended

| ended | times |
|---|---|
"""


def write(results: Results, seed: int, airflow: Sequence[str]) -> None:
    """``airflow``: the results of the tests on a real Airflow, a line each."""
    known = {str(case): case for case in cases()}
    done = [name for name in known if results.times[name]]
    head = HEAD.format(
        date=f"{datetime.now(UTC):%d %B %Y}",
        seed=seed,
        done=len(done),
        all=len(known),
        injections=sum(results.times[name] for name in done),
        bad=len(results.found),
        hours=results.seconds / 3600,
        machine=_machine(),
        versions=", ".join(f"{name} {version(name)}" for name in PACKAGES),
    )
    names = " | ".join(ACTION_TEXTS)
    table = TABLE.format(actions=ACTION_LIST, names=names, rule="---|" * len(ACTION_TEXTS))
    rows = "\n".join(_rows(list(known.values()), results))
    found = "\n".join(f"- {name}: {what[0]}" for name, what in sorted(results.found.items())) or "None."
    parts = [head, f"\n## Findings\n\n{found}\n", f"\n{FIXED_DEFECTS.read_text()}", table + rows + "\n"]
    parts += [FROZEN + "\n".join(_thawed(results)) + "\n", _on_airflow(airflow)]
    PAGE.write_text("".join(parts))


def _rows(all_cases: list[Case], results: Results) -> Iterator[str]:
    def line(case: Case) -> tuple[Failpoint, str, str]:
        return case.failpoint, case.step, case.target

    for (failpoint, step, target), group in groupby(all_cases, key=line):
        of = {case.action: str(case) for case in group}
        cells = [str(results.times[of[name]]) if name in of else "-" for name in ACTION_TEXTS]
        found = sum(len(results.found.get(name, ())) > 0 for name in of.values())
        yield f"| `{failpoint.name}` | {failpoint.meaning} | {step} | {target} | {' | '.join(cells)} | {found or ''} |"


def _thawed(results: Results) -> Iterator[str]:
    total: Counter[str] = Counter()
    for ended in results.ended.values():
        for how, times in ended.items():
            total[", ".join(sorted({part.split(" ")[-1] for part in how.split(", ")})) or how] += times
    for how, times in total.most_common():
        yield f"| {how} | {times} |"


def _on_airflow(lines: Sequence[str]) -> str:
    listed = "\n".join(f"- {line}" for line in lines) or "Not run."
    return f"\n## On a real Airflow\n\n{listed}\n"


def _machine() -> str:
    cpus = os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr.split('"')
    return f"{cpus} cores, {memory} GiB, {platform.system()}, Python {platform.python_version()}, Java {java[1]}"
