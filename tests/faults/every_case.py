"""Runs every case of the fault matrix, as ``tests.faults`` says, and writes the report."""

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

from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.faults import report
from tests.faults.environment import SERVER_SETTINGS, fault_runner, session
from tests.faults.grouping import CaseGroup, group_cases, single_case
from tests.faults.matrix import Case, cases
from tests.faults.results import Results
from tests.faults.runner import FaultRunner
from tests.faults.servers import Servers
from tests.model import seeds

FOLDER = Path(__file__).parents[2] / "build" / "faults"


def run() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # frozen processes must not stay frozen
    only = os.environ.get("ONLY", "").split()
    seed = int(seeds.seed() if seeds.chosen() else seeds.new())
    print(f"seed {seed}", flush=True)
    chosen = [case for case in cases() if all(word in str(case) for word in only)]
    results = Results(FOLDER / f"{seed}.jsonl")
    with contextlib.ExitStack() as stack:
        servers = stack.enter_context(Servers(stack.enter_context(EmbeddedPostgres(SERVER_SETTINGS))))
        missing = {target for target in {case.target for case in chosen} if not servers.can_start(target)}
        chosen = [case for case in chosen if case.target not in missing]
        spark = session()
        stack.callback(spark.stop)
        for number in range(1, int(os.environ.get("ROUNDS") or 1) + 1):
            left = [case for case in chosen if results.times[str(case)] < number]
            random.Random(seed + number).shuffle(left)
            with fault_runner(servers, seed + number) as runner:
                run_cases(runner, left, results)
            if runner.unsettled:
                results.found["at the end of a system"] = runner.unsettled
    if not only:
        report.write(results, seed, on_airflow(seed))
    for case, found in results.found.items():
        print(f"FAILED {case}: {found[0]}", flush=True)
    return int(bool(results.found))


def on_airflow(seed: int) -> list[str]:
    """The results of the tests on a real Airflow. The tests of the checker and of source and target errors run, too."""
    with tempfile.TemporaryDirectory(prefix="cdc-faults-") as folder:
        xml = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "", f"--junitxml={xml}", str(Path(__file__).parent)]
        command += ["--deselect", str(Path(__file__).with_name("test_matrix.py"))]
        subprocess.run(command, env=os.environ | {seeds.SEED: str(seed)}, stdin=subprocess.DEVNULL, check=False)
        return [
            f"{one.get('name', '').removeprefix('test_').replace('_', ' ')}: "
            + ("failed" if list(one) else f"{float(one.get('time', '0')):.0f} s")
            for one in ElementTree.parse(xml).iter("testcase")
            if "test_on_airflow" in one.get("classname", "")
        ]


def run_cases(runner: FaultRunner, left: list[Case], results: Results) -> None:
    """All cases, many in one run of the DAG. Cases of a run that fails or does not reach them run again one by one."""
    one_by_one: list[Case] = []
    for group in group_cases(left):
        one_by_one += run_group(runner, group, results)
    for case in one_by_one:
        run_group(runner, single_case(case), results)


def run_group(runner: FaultRunner, group: CaseGroup, results: Results) -> list[Case]:
    """Returns the cases that have to run alone."""
    outcome = runner.run(group)
    names = "; ".join(str(case) for _, case in group.cases)
    print(f"{time.strftime('%T')} {outcome.seconds:5.0f} s  {group.workload}: {names}", flush=True)
    for what in outcome.findings:
        print(f"    {what}", flush=True)
    ended = dict(outcome.ended)
    if len(group.cases) == 1:
        ((_, case),) = group.cases
        results.add(case, outcome.seconds, list(outcome.findings), ended.get(case, ""))
        return []
    if outcome.findings:
        results.found[f"in one run: {names}"] = list(outcome.findings)
        return [case for _, case in group.cases]
    for case, how in ended.items():
        results.add(case, outcome.seconds / len(ended), [], how)
    return [case for _, case in group.cases if case not in ended]
