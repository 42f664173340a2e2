"""What the parts of the demo play on: one Airflow, one folder, one clock."""

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

dag = build_dag(__file__)  # an Airflow DAG, made of replicators/{name}.yaml
"""

IDENTICAL, DIFFERENT = 0, 1
RUN_LIMIT_S = 1800
console = Console(highlight=False, soft_wrap=True)


class Failed(Exception):
    """The demo cannot go on; says why."""


@dataclass
class Stage:
    """``home`` holds the lake and Airflow's own folder."""

    home: Path
    airflow: EmbeddedAirflow
    began: float = field(default_factory=time.monotonic)
    progress: Progress = field(default_factory=lambda: Progress(console))
    commands: list[subprocess.Popen[str]] = field(default_factory=list)

    def close(self) -> None:
        """Ends the commands that still run."""
        for command in self.commands:
            command.kill()

    def say(self, text: str) -> None:
        console.print(f"[{time.monotonic() - self.began:5.0f} s] {text}", markup=False)

    def environment_file(self) -> Path:
        """Source it, and ``airflow`` on the command line is this one. It holds the passwords of the demo's systems."""
        own = {name: text for name, text in self.airflow.environment.items() if os.environ.get(name) != text}
        path = self.home / "environment"
        path.touch(0o600)
        path.write_text("".join(f"export {name}={shlex.quote(text)}\n" for name, text in own.items()))
        return path

    def add(self, name: str, replicator: str) -> None:
        """The two files of a replicator, its YAML with ``{home}`` filled in."""
        (self.airflow.dags / "replicators").mkdir(exist_ok=True)
        (self.airflow.dags / "replicators" / f"{name}.yaml").write_text(replicator)
        (self.airflow.dags / f"{name}.py").write_text(DAG_FILE.format(name=name))

    def follow(self, dag: str, what: str) -> dict[str, str]:
        """A run by hand, to its end: the state of each task. A run that fails ends the demo with the tasks' logs."""
        self.say(f"{dag}: {what}")
        self.progress.tell(dag, "starting a run")
        run = self.airflow.trigger(dag)
        try:
            state = self.airflow.wait(dag, run, RUN_LIMIT_S, lambda: self._watch(dag, run))
        finally:
            self.progress.end(dag)
        tasks = self.airflow.tasks(dag, run)
        if state != "success":
            for task, ended in tasks.items():
                if ended in ("failed", "upstream_failed"):
                    console.print(f"task {task} {ended}:\n{self.airflow.task_log(dag, run, task)}", markup=False)
            raise Failed(f"run {run} of {dag} failed")
        return tasks

    def _watch(self, dag: str, run: str) -> None:
        tasks = self.airflow.tasks(dag, run)
        running = [task for task, state in tasks.items() if state == "running"]
        done = sum(state in ("success", "skipped") for state in tasks.values())
        self.progress.tell(dag, f"{' and '.join(running) or 'waiting'} ({done} of {len(tasks)} tasks done)")

    def verify(self, dag: str) -> bool:
        """Whether both sides are identical. The table is printed; of Airflow's own words nothing, unless it fails."""
        self.progress.tell(dag, "verify")
        command = subprocess.Popen(
            [self.airflow.python, "-m", "airflow", "cdc", "verify", dag, "--now", "--wait"],
            env=self.airflow.environment,
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
            raise Failed(f"verify of {dag} ended with {command.returncode}")
        return command.returncode == IDENTICAL
