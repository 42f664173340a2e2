"""What both replicators of the demo share: one Airflow, one folder, one console."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow
from airflow_cdc_provider.sandbox.demo.progress import Progress

DAG_FILE = """\
from airflow_cdc_provider.factory import build_dag

dag = build_dag(__file__)  # an Airflow DAG, built from replicators/{name}.yaml
"""

IDENTICAL, DIFFERENT = 0, 1
RUN_LIMIT_S = 1800
QUESTION_LIMIT_S = 300
MAX_RUNS = 4
console = Console(highlight=False, soft_wrap=True)


class Failed(Exception):
    """A run or a command failed; the demo ends."""


@dataclass(frozen=True)
class RequiredAction:
    """``dag``: the one that asks; ``run_id``: of its run, and of the run that carries the answer out."""

    dag: str
    run_id: str
    subject: str


@dataclass
class DemoRun:
    """``home`` contains the lake and Airflow's home folder."""

    home: Path
    airflow: EmbeddedAirflow
    began: float = field(default_factory=time.monotonic)
    progress: Progress = field(default_factory=lambda: Progress(console))
    commands: list[subprocess.Popen[str]] = field(default_factory=list)

    def close(self) -> None:
        """End the commands that still run."""
        for command in self.commands:
            command.kill()

    def log(self, text: str) -> None:
        console.print(f"[{time.monotonic() - self.began:5.0f} s] {text}", markup=False)

    def environment_file(self) -> Path:
        """A shell script that makes ``airflow`` on the command line use this Airflow. It contains passwords."""
        changed = {name: text for name, text in self.airflow.environment.items() if os.environ.get(name) != text}
        path = self.home / "environment"
        path.touch(0o600)
        path.write_text("".join(f"export {name}={shlex.quote(text)}\n" for name, text in changed.items()))
        return path

    def add(self, name: str, replicator: str) -> None:
        """Write the YAML and the DAG file of a replicator."""
        (self.airflow.dags / "replicators").mkdir(exist_ok=True)
        (self.airflow.dags / "replicators" / f"{name}.yaml").write_text(replicator)
        (self.airflow.dags / f"{name}.py").write_text(DAG_FILE.format(name=name))

    def follow(self, dag: str, what: str) -> dict[str, str]:
        """Start a run and wait for its end. Returns the state of each task. Raises Failed, after the tasks' logs."""
        self.log(f"{dag}: {what}")
        self.progress.show(dag, "starting a run")
        return self.finish(dag, self.airflow.trigger(dag))

    def finish(self, dag: str, run: str) -> dict[str, str]:
        """Wait for the end of a run, as ``follow``."""
        try:
            state = self.airflow.wait(dag, run, RUN_LIMIT_S, lambda: self._show_tasks(dag, run))
        finally:
            self.progress.end(dag)
        tasks = self.airflow.tasks(dag, run)
        if state != "success":
            for task, task_state in tasks.items():
                if task_state in ("failed", "upstream_failed"):
                    console.print(f"task {task} {task_state}:\n{self.airflow.task_log(dag, run, task)}", markup=False)
            raise Failed(f"run {run} of {dag} failed")
        return tasks

    def wait_for_question(self, dag: str) -> RequiredAction:
        """Start runs, which fail because a table is blocked, until one has asked an operator."""
        questions = f"{dag}_questions"
        for _ in range(MAX_RUNS):
            if found := self._questions(questions):
                return found[0]
            self.progress.show(dag, "waiting for a question")
            run = self.airflow.trigger(dag)
            self.airflow.wait(dag, run, RUN_LIMIT_S, lambda run=run: self._show_tasks(dag, run))  # type: ignore[misc]
        raise Failed(f"{dag} asked no question in {MAX_RUNS} runs")

    def _questions(self, dag: str) -> list[RequiredAction]:
        self.airflow.wait_for_dag(dag)
        deadline = time.monotonic() + QUESTION_LIMIT_S
        while time.monotonic() < deadline:
            runs = self.airflow.request("GET", f"/dags/{dag}/dagRuns")["dag_runs"]
            if not runs:
                return []
            path = f"/dags/{dag}/dagRuns/~/hitlDetails"
            details = self.airflow.request("GET", path, params={"response_received": "false"})["hitl_details"]
            if details:
                return [RequiredAction(dag, one["task_instance"]["dag_run_id"], one["subject"]) for one in details]
            time.sleep(0.5)
        raise Failed(f"the question of {dag} did not appear")

    def answer(self, question: RequiredAction, answer: str) -> None:
        path = f"/dags/{question.dag}/dagRuns/{question.run_id}/taskInstances/ask/-1/hitlDetails"
        self.airflow.request("PATCH", path, json={"chosen_options": [answer], "params_input": {}})
        if self.airflow.wait(question.dag, question.run_id, QUESTION_LIMIT_S) != "success":
            logs = [self.airflow.task_log(question.dag, question.run_id, task) for task in ("record", "run")]
            raise Failed("the answer was not recorded:\n" + "\n".join(logs))

    def _show_tasks(self, dag: str, run: str) -> None:
        tasks = self.airflow.tasks(dag, run)
        running = [task for task, state in tasks.items() if state == "running"]
        done = sum(state in ("success", "skipped") for state in tasks.values())
        self.progress.show(dag, f"{' and '.join(running) or 'waiting'} ({done} of {len(tasks)} tasks done)")

    def verify(self, dag: str) -> bool:
        """Whether source and target are identical. Prints the table of the command, and its log if it fails."""
        self.progress.show(dag, "verify")
        command = subprocess.Popen(
            [self.airflow.python, "-m", "airflow", "cdc", "verify", dag, "--now", "--wait"],
            env=self.airflow.environment | {"COLUMNS": str(console.width)},
            cwd=self.airflow.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.commands.append(command)
        output, errors = command.communicate()
        self.progress.end(dag)
        console.print(output, markup=False, end="")
        if command.returncode not in (IDENTICAL, DIFFERENT):
            console.print(errors, markup=False, end="")
            raise Failed(f"verify of {dag} ended with exit code {command.returncode}")
        return command.returncode == IDENTICAL
