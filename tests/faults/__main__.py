"""`make faults`: every case of the matrix, ``ROUNDS`` times over (once by default), then the report.

``ONLY="words"``: cases whose text holds them all. ``CDC_SEED`` decides the order and what the writer writes; the same
seed goes on where a run was stopped.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from airflow_cdc_provider.core.errors import NotInstalled
from airflow_cdc_provider.sandbox.mariadb import EmbeddedMariaDB
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults import report
from tests.faults.acts import Act, acts, alone
from tests.faults.matrix import Case, cases
from tests.faults.performing import Theatre
from tests.faults.results import Results
from tests.faults.stage import MANY, session, theatre
from tests.model import seeds

FOLDER = Path(__file__).parents[2] / "build" / "faults"


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what was stopped must not stay so
    only = os.environ.get("ONLY", "").split()
    seed = int(seeds.seed() if seeds.chosen() else seeds.new())
    print(f"seed {seed}", flush=True)
    chosen = [case for case in cases() if all(word in str(case) for word in only)]
    results = Results(FOLDER / f"{seed}.jsonl")
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(EmbeddedPostgres(MANY))
        mariadb = None
        try:
            mariadb = stack.enter_context(EmbeddedMariaDB())
        except NotInstalled as error:
            print(f"left out: {error}", flush=True)
            chosen = [case for case in chosen if case.target != "mysql"]
        spark = session()
        stack.callback(spark.stop)
        for number in range(1, int(os.environ.get("ROUNDS") or 1) + 1):
            left = [case for case in chosen if results.times[str(case)] < number]
            random.Random(seed + number).shuffle(left)
            with theatre(server, mariadb, seed + number) as stage:
                play(stage, left, results)
            if stage.unsettled:
                results.found["at the end of a world"] = stage.unsettled
    if not only:
        report.write(results, seed, on_airflow(seed))
    for case, found in results.found.items():
        print(f"FAILED {case}: {found[0]}", flush=True)
    return int(bool(results.found))


def on_airflow(seed: int) -> list[str]:
    """What became of each test on a real Airflow, and of those that plant damages and troubles."""
    with tempfile.TemporaryDirectory(prefix="cdc-faults-") as folder:
        told = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={told}", str(Path(__file__).parent)]
        command += ["--deselect", str(Path(__file__).with_name("test_matrix.py"))]
        subprocess.run(command, env=os.environ | {seeds.SEED: str(seed)}, stdin=subprocess.DEVNULL, check=False)
        return [
            f"{one.get('name', '').removeprefix('test_').replace('_', ' ')}: "
            + ("failed" if list(one) else f"{float(one.get('time', '0')):.0f} s")
            for one in ElementTree.parse(told).iter("testcase")
            if "doubles" in one.get("classname", "")
        ]


def play(stage: Theatre, left: list[Case], results: Results) -> None:
    """All cases, many in one run of the DAG. Where that run fails, and for what it did not come to, each alone."""
    one_by_one: list[Case] = []
    for act in acts(left):
        one_by_one += one_act(stage, act, results)
    for case in one_by_one:
        one_act(stage, alone(case), results)


def one_act(stage: Theatre, act: Act, results: Results) -> list[Case]:
    """The cases that are still to be done alone."""
    outcome = stage.perform(act)
    names = "; ".join(str(case) for _, case in act.cases)
    print(f"{time.strftime('%T')} {outcome.seconds:5.0f} s  {act.scene}: {names}", flush=True)
    for what in outcome.found:
        print(f"    {what}", flush=True)
    ended = dict(outcome.ended)
    if len(act.cases) == 1:
        ((_, case),) = act.cases
        results.add(case, outcome.seconds, list(outcome.found), ended.get(case, ""))
        return []
    if outcome.found:
        results.found[f"together: {names}"] = list(outcome.found)
        return [case for _, case in act.cases]
    for case, how in ended.items():
        results.add(case, outcome.seconds / len(ended), [], how)
    return [case for _, case in act.cases if case not in ended]


if __name__ == "__main__":
    sys.exit(main())
