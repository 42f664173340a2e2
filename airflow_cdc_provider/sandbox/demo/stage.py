"""What the parts of the demo play on: one Airflow, one folder, one clock."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from airflow_cdc_provider.sandbox.airflow import EmbeddedAirflow

DAG_FILE = """\
from airflow_cdc_provider.factory import build_dag

dag = build_dag(__file__)  # an Airflow DAG, made of replicators/{name}.yaml
"""

console = Console(highlight=False, soft_wrap=True)


@dataclass
class Stage:
    """``home`` holds the lake and Airflow's own folder."""

    home: Path
    airflow: EmbeddedAirflow
    began: float = field(default_factory=time.monotonic)
    commands: list[subprocess.Popen[str]] = field(default_factory=list)

    def close(self) -> None:
        """Ends the commands that still run."""
        for command in self.commands:
            command.kill()

    def say(self, text: str) -> None:
        console.print(f"[{time.monotonic() - self.began:5.0f} s] {text}", markup=False)

    def add(self, name: str, replicator: str) -> None:
        """The two files of a replicator, its YAML with ``{home}`` filled in."""
        (self.airflow.dags / "replicators").mkdir(exist_ok=True)
        (self.airflow.dags / "replicators" / f"{name}.yaml").write_text(replicator)
        (self.airflow.dags / f"{name}.py").write_text(DAG_FILE.format(name=name))

    def follow(self, dag: str, what: str) -> dict[str, str]:
        """A run by hand, to its end: the state of each task. A run that fails ends the demo with the tasks' logs."""
        self.say(f"{dag}: {what}")
        run = self.airflow.trigger(dag)
        state = self.airflow.wait(dag, run)
        tasks = self.airflow.tasks(dag, run)
        if state != "success":
            for task, ended in tasks.items():
                if ended in ("failed", "upstream_failed"):
                    console.print(f"task {task} {ended}:\n{self.airflow.task_log(dag, run, task)}", markup=False)
            raise SystemExit(f"run {run} of {dag} failed")
        return tasks

    def verify(self, dag: str) -> bool:
        """Whether both sides are identical. The table is printed."""
        command = subprocess.Popen(
            [self.airflow.python, "-m", "airflow", "cdc", "verify", dag, "--now", "--wait"],
            env=self.airflow.environment,
            cwd=self.airflow.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.commands.append(command)
        output, _ = command.communicate()
        console.print(output, markup=False, end="")
        return command.returncode == 0
