"""What a worker's own task or the command line does, as a process of its own that can be killed or stopped.

    python -m tests.faults.worker <file with what to do>

Exit status 0 done, 75 fenced or to be tried again, else as the error class says.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_cdc_provider.control.close_window import close_window
from airflow_cdc_provider.control.immediate_commands import carry_out
from airflow_cdc_provider.control.inventory import known_tables, rebuild_index
from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.open_window import open_window
from airflow_cdc_provider.control.reconcile import find_holes, pause_stream, resume_stream
from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.errors import CdcError
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.state.store import StateStore

Told = dict[str, Any]


@dataclass(frozen=True)
class Order:
    """``task`` of run ``run_id``, or what an operator asks for: ``pause``, ``resume``, ``rewind``, ``rebuild_index``.
    ``told`` are arguments: failed tasks, tables, where to, the key of a request."""

    definition: Definition
    secrets: Secrets = field(repr=False)
    state_url: str
    task: str
    run_id: str
    told: Told


def carry(replicator: Replicator, task: str, run_id: str, told: Told) -> Any:
    """The task's own answer. Raises what it raises."""

    def tell(line: str) -> None:
        print(line, flush=True)

    match task:
        case "open_window":
            return open_window(replicator, RunContext(run_id), tell)
        case "find_holes":
            return find_holes(replicator, run_id, tell)
        case "reconcile.pause_stream":
            return pause_stream(replicator, run_id, tell)
        case "reconcile.resume_stream":
            return resume_stream(replicator, run_id, tell)
        case "close_window":
            return close_window(replicator, run_id, told["failed"], tell)
        case "rebuild":
            return rebuild_index(replicator, "operator")
        case asked:
            return request(replicator, CommandKind(asked), told)


def request(replicator: Replicator, kind: CommandKind, told: Told) -> Any:
    """As the command line does: written down, and carried out at once where no Spark is needed."""
    asked = replicator.state.request(
        replicator.name, kind, told["tables"], told.get("arguments", {}), told["key"], "operator"
    )
    if kind in (CommandKind.PAUSE, CommandKind.RESUME, CommandKind.REWIND) and not asked.finished:
        wanted = {table: target for table, target in known_tables(replicator).items() if asked.names(table)}
        held = {table: replicator.target.state(table, target) for table, target in wanted.items()}
        carry_out(replicator, [asked], wanted, held, "operator")
    return replicator.state.command(asked.id)


def main() -> int:
    order = from_plain(Order, json.loads(Path(sys.argv[1]).read_text()))
    Path(sys.argv[1]).unlink()
    try:
        if order.told.get("number"):
            attempt(order)
        else:
            replicator = open_replicator(order.definition, order.secrets, StateStore(order.state_url))
            carry(replicator, order.task, order.run_id, order.told)
    except CdcError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


def attempt(order: Order) -> None:
    """A try at a Spark task that is struck before it submits a driver."""
    from airflow_cdc_provider.core.decisions.steps import StepKind
    from airflow_cdc_provider.operators import attempt as operator
    from tests.faults import attempts

    attempts.armed.set({})  # woken, it submits
    attempts.worker.set(order.told["worker"])
    kind = StepKind(order.task.rpartition(".")[2])
    with attempts.operating(lambda _: order.secrets):
        made = operator.Attempt(
            kind, order.definition, order.run_id, order.task, order.told["number"], StateStore(order.state_url)
        )
        made.result()


if __name__ == "__main__":
    sys.exit(main())
