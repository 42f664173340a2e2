"""A task in a worker or a command of an operator, as a process of its own that can be killed or stopped.

    python -m tests.faults.worker <file with a TaskCall>

Exit status: 0 done, 75 fenced or retryable, otherwise that of the error class.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_cdc_provider.control.answers import answer_open_question, open_questions
from airflow_cdc_provider.control.close_window import close_window
from airflow_cdc_provider.control.inventory import rebuild_index
from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.open_window import open_window
from airflow_cdc_provider.control.reconcile import find_holes, pause_stream, resume_stream
from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.control.submit_commands import submit_command
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.run_plan import Mode
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.state.store import StateStore

Arguments = dict[str, Any]


@dataclass(frozen=True)
class TaskCall:
    """``task`` of run ``run_id``, or a command: ``pause``, ``resume``, ``rewind``, ``rebuild``, ``decide``.
    ``arguments``: failed tasks, tables, the window to rewind to, the key of a request; the table of a question and the
    answer."""

    definition: Definition
    secrets: Secrets = field(repr=False)
    state_url: str
    task: str
    run_id: str
    arguments: Arguments


def run_task(replicator: Replicator, task: str, run_id: str, arguments: Arguments) -> Any:
    """The answer of the task. Raises the error of the task."""

    def log(line: str) -> None:
        print(line, flush=True)

    match task:
        case "open_window":
            interval = arguments.get("interval")
            context = RunContext(run_id, Mode.REPAIR, interval) if interval else RunContext(run_id)
            return open_window(replicator, context, log)
        case "find_holes":
            return find_holes(replicator, run_id, log)
        case "reconcile.pause_stream":
            return pause_stream(replicator, run_id, log)
        case "reconcile.resume_stream":
            return resume_stream(replicator, run_id, log)
        case "close_window":
            return close_window(replicator, run_id, arguments["failed"], log)
        case "rebuild":
            return rebuild_index(replicator, "operator")
        case "decide":
            question = open_questions(replicator)[arguments["table"]]
            return answer_open_question(replicator, question, Answer(arguments["answer"]), "ada", "because")
        case kind:
            return request(replicator, CommandKind(kind), arguments)


def request(replicator: Replicator, kind: CommandKind, arguments: Arguments) -> Any:
    """As the command line does."""
    given = arguments.get("arguments", {})
    return submit_command(replicator, kind, arguments["tables"], given, arguments["key"], "operator")


def main() -> int:
    call = from_plain(TaskCall, json.loads(Path(sys.argv[1]).read_text()))
    Path(sys.argv[1]).unlink()
    try:
        if call.arguments.get("number"):
            attempt(call)
        else:
            replicator = open_replicator(call.definition, call.secrets, StateStore(call.state_url))
            run_task(replicator, call.task, call.run_id, call.arguments)
    except CdcError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def attempt(call: TaskCall) -> None:
    """A try of a Spark task with a failpoint before it submits a driver."""
    from airflow_cdc_provider.core.decisions.steps import StepKind
    from airflow_cdc_provider.operators import attempt as operator
    from tests.faults import attempts

    attempts.armed.set({})  # after the thaw it submits
    attempts.worker.set(call.arguments["worker"])
    kind = StepKind(call.task.rpartition(".")[2])
    with attempts.operating(lambda _: call.secrets):
        made = operator.Attempt(
            kind, call.definition, call.run_id, call.task, call.arguments["number"], StateStore(call.state_url)
        )
        made.result()


if __name__ == "__main__":
    sys.exit(main())
