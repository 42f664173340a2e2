"""Runs the layers of tests, each in its own pytest: one after another, and those with an Airflow concurrently at the
end.

The table at the end shows the share of each layer and which layers exceeded their budget; that does not fail a layer.
The last line counts all layers in the format of pytest.

``--nightly``: every test, also those marked nightly, with a new seed (or ``CDC_SEED``) and long rounds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.model import seeds

TESTS = Path(__file__).parent
# Seconds on two idle cores, 25 minutes in all; of concurrent layers the longest counts. A layer is a folder; a nested
# folder of this table is a layer of its own.
BUDGETS_S = {
    "architecture": 30,
    "core": 30,
    "connectors": 300,
    "provider": 300,
    "spark": 670,
    "programs": 140,
    "e2e": 330,
    "faults": 330,
}
ALONE = frozenset({"e2e", "faults"})
"""Layers with an Airflow of their own: one test at a time."""
CONCURRENT = ALONE | {"provider"}
"""Layers that run concurrently at the end, since those with an Airflow mostly wait."""
FILES_AT_ONCE = 2
MORE_FILES_AT_ONCE = {"connectors": 3, "spark": 3, "programs": 3}
"""Layers whose tests wait for servers, or for other threads of their own."""
IN_GIVEN_ORDER = frozenset({"spark"})
"""Layers that put their slowest files first. By default those with the most tests come first."""
OF_ANY_FILE = frozenset({"programs"})
"""Layers whose processes share the tests of a file: they have no fixtures of a file."""
LONG_ROUNDS = 10
"""The factor for the number of random histories and examples."""
NIGHTLY = ("-m", "", "-o", "timeout=3600", "-o", "faulthandler_timeout=4500")
INTERRUPTED_LIMIT_S = 60
MEMORY = Path("/dev/shm")
NEEDED_BYTES = 8 << 30
SHARED = 0o1777
"""The mode of a folder for temporary files of all users: servers of databases do not run as root."""

NOTHING_COLLECTED = 5
FAILURES_SHOWN, FAILURE_WIDTH, FILES_SHOWN = 40, 300, 40


@dataclass(frozen=True)
class Outcome:
    """``failures``: a line for each test that failed."""

    layer: str
    status: int
    took_s: float
    counts: dict[str, int]
    failures: tuple[str, ...] = ()

    @property
    def late(self) -> bool:
        return self.took_s > BUDGETS_S[self.layer]

    @property
    def failed(self) -> bool:
        return self.status not in (0, NOTHING_COLLECTED)


@dataclass(frozen=True)
class Running:
    """``output``: where pytest prints; None where it prints to the terminal. ``scratch``: the folder for temporary
    files of the layer."""

    layer: str
    process: subprocess.Popen[bytes]
    began_s: float
    scratch: tempfile.TemporaryDirectory[str]
    output: Path | None

    def end(self) -> Outcome:
        status = self.process.wait()
        took_s = time.monotonic() - self.began_s
        if self.output is not None:
            print(self.output.read_text(errors="replace"), flush=True)
        with self.scratch as folder:
            report = Path(folder) / "report.xml"
            print(*slowest_files(report), sep="\n", flush=True)
            return Outcome(self.layer, status, took_s, counts(report), failures(report))


def run(layer: str, tests: Path = TESTS, options: Sequence[str] = ()) -> Outcome:
    (outcome,) = run_at_once([layer], tests, options)
    return outcome


def run_at_once(layers: Sequence[str], tests: Path = TESTS, options: Sequence[str] = ()) -> list[Outcome]:
    """The output of the first layer is printed as it runs, that of the others after it."""
    running = [begin(layer, tests, options, quiet=number > 0) for number, layer in enumerate(layers)]
    try:
        return [one.end() for one in running]
    except KeyboardInterrupt:
        for one in running:
            interrupt(one.process)
        raise


def begin(layer: str, tests: Path, options: Sequence[str], quiet: bool) -> Running:
    """With a process group of its own, so that a killed layer leaves no server or JVM behind."""
    scratch = tempfile.TemporaryDirectory(prefix="cdc-layer-", dir=memory(), ignore_cleanup_errors=True)
    os.chmod(scratch.name, SHARED)
    output = Path(scratch.name) / "output" if quiet else None
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--durations=12",
        f"--junitxml={scratch.name}/report.xml",
        *options,
    ]
    command += [str(tests / layer)]
    command += [f"--ignore={tests / one}" for one in BUDGETS_S if one.startswith(f"{layer}/")]
    processes = MORE_FILES_AT_ONCE.get(layer, FILES_AT_ONCE)
    shared = "worksteal" if layer in OF_ANY_FILE else "loadfile"
    command += [] if layer in ALONE else [f"--numprocesses={processes}", f"--dist={shared}", "--max-worker-restart=0"]
    command += ["--no-loadscope-reorder"] if layer in IN_GIVEN_ORDER else []
    began_s = time.monotonic()
    with contextlib.ExitStack() as files:
        process = subprocess.Popen(
            command,
            cwd=tests.parent,
            env={**os.environ, "TMPDIR": scratch.name},
            stdin=subprocess.DEVNULL,
            stdout=files.enter_context(output.open("wb")) if output else None,
            stderr=subprocess.STDOUT if output else None,
            start_new_session=True,
            preexec_fn=heed_interrupts,
        )
    return Running(layer, process, began_s, scratch, output)


def memory() -> Path | None:
    """A file system in memory, if there is one with enough space: tests with databases and change logs spend half of
    their time waiting for a disk to sync."""
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < NEEDED_BYTES:
        return None
    return MEMORY


def heed_interrupts() -> None:
    """A shell makes background processes ignore interrupts, which child processes inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """SIGINT first: pytest then reports the interrupted test and its fixtures stop their servers."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(INTERRUPTED_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def counts(report: Path) -> dict[str, int]:
    """From the JUnit report of pytest; a killed run has none."""
    if not report.exists():
        return {}
    totals = {"failed": 0, "passed": 0, "skipped": 0, "errors": 0}
    for suite in ElementTree.parse(report).iter("testsuite"):
        found = {name: int(suite.get(name, "0")) for name in ("tests", "failures", "skipped", "errors")}
        totals["failed"] += found["failures"]
        totals["skipped"] += found["skipped"]
        totals["errors"] += found["errors"]
        totals["passed"] += found["tests"] - found["failures"] - found["skipped"] - found["errors"]
    return totals


def failures(report: Path) -> tuple[str, ...]:
    """Name and first line of the error of each test that failed, also in a fixture."""
    if not report.exists():
        return ()
    return tuple(
        f"{test.get('classname')}::{test.get('name')}: {(error.get('message') or ' ').splitlines()[0]}"
        for test in ElementTree.parse(report).iter("testcase")
        for error in [*test.findall("failure"), *test.findall("error")]
    )


def slowest_files(report: Path) -> list[str]:
    """Seconds, tests and name of the files whose tests take longest, with their fixtures."""
    if not report.exists():
        return []
    seconds, tests = defaultdict[str, float](float), Counter[str]()
    for test in ElementTree.parse(report).iter("testcase"):
        file = str(test.get("classname"))
        seconds[file] += float(test.get("time", "0"))
        tests[file] += 1
    slowest = sorted(seconds, key=seconds.__getitem__, reverse=True)[:FILES_SHOWN]
    return [f"{seconds[file]:>8.0f} s {tests[file]:>5}  {file}" for file in slowest]


def in_turn(layers: Sequence[str]) -> list[list[str]]:
    at_once = [layer for layer in layers if layer in CONCURRENT]
    return [[layer] for layer in layers if layer not in CONCURRENT] + ([at_once] if at_once else [])


def table(outcomes: list[Outcome], whole_s: float) -> str:
    """The share of a concurrent layer is that of its own time, so that the shares may add up to more than 100 %."""
    turns = in_turn([outcome.layer for outcome in outcomes])
    budget_s = sum(max(BUDGETS_S[layer] for layer in layers) for layers in turns)
    lines = [f"{'layer':<16}{'seconds':>8}{'share':>7}{'budget':>8}"]
    for outcome in outcomes:
        figures = f"{outcome.took_s:>8.0f}{outcome.took_s / max(whole_s, 1):>7.0%}{BUDGETS_S[outcome.layer]:>8}"
        remarks = ", ".join(["failed"] * outcome.failed + ["over its budget"] * outcome.late)
        lines.append(f"{outcome.layer:<16}{figures}  {remarks}".rstrip())
    return "\n".join([*lines, f"{'all':<16}{whole_s:>8.0f}{1:>7.0%}{budget_s:>8}"])


def failure_lines(outcomes: list[Outcome]) -> list[str]:
    """The first of all layers: the outputs of the layers may be cut by a terminal that shows them."""
    found = [failure for outcome in outcomes for failure in outcome.failures]
    more = [f"and {len(found) - FAILURES_SHOWN} more"] if len(found) > FAILURES_SHOWN else []
    return [*(failure[:FAILURE_WIDTH] for failure in found[:FAILURES_SHOWN]), *more]


def closing_line(outcomes: list[Outcome], whole_s: float) -> str:
    """In the format of pytest: ``== 2 failed, 40 passed in 12.34s ==``. An interrupted layer counts as an error."""
    totals = {
        name: sum(outcome.counts.get(name, 0) for outcome in outcomes)
        for name in ("failed", "passed", "skipped", "errors")
    }
    interrupted = [outcome for outcome in outcomes if outcome.failed and not has_failures(outcome)]
    totals["errors"] += len(interrupted)
    summary = ", ".join(f"{number} {name}" for name, number in totals.items() if number) or "no tests ran"
    return f" {summary} in {whole_s:.2f}s ".center(80, "=")


def has_failures(outcome: Outcome) -> bool:
    return bool(outcome.counts.get("failed") or outcome.counts.get("errors"))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.run_layers", description=__doc__)
    parser.add_argument("layers", nargs="*", metavar="layer", help=f"all by default: {', '.join(BUDGETS_S)}")
    parser.add_argument("--nightly", action="store_true", help="every test, a new seed, long rounds")
    arguments = parser.parse_args()
    chosen = arguments.layers or list(BUDGETS_S)
    if unknown := set(chosen) - BUDGETS_S.keys():
        parser.error(f"no such layer: {', '.join(sorted(unknown))}")
    if arguments.nightly:
        os.environ |= {seeds.SEED: os.environ.get(seeds.SEED) or seeds.new(), seeds.TIMES: str(LONG_ROUNDS)}
        print(f"again: make nightly SEED={seeds.seed()}", flush=True)
    present = [layer for layer in BUDGETS_S if layer in chosen and any((TESTS / layer).rglob("test_*.py"))]
    began_s, outcomes = time.monotonic(), list[Outcome]()
    for layers in in_turn(present):
        print(f"\n--- {', '.join(layers)} ---", flush=True)
        outcomes += run_at_once(layers, options=NIGHTLY if arguments.nightly else ())
    whole_s = time.monotonic() - began_s
    print(
        f"\n{table(outcomes, whole_s)}", *failure_lines(outcomes), closing_line(outcomes, whole_s), sep="\n", flush=True
    )
    if arguments.nightly:
        print(f"again: make nightly SEED={seeds.seed()}", flush=True)
    return int(not outcomes or any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
