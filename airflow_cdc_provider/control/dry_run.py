"""What the next run of a replicator would do. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.control.answers import answered_questions
from airflow_cdc_provider.control.begun_drops import begun_drops, marks_of_run
from airflow_cdc_provider.control.first_copies import paused_copies
from airflow_cdc_provider.control.immediate_commands import IMMEDIATE
from airflow_cdc_provider.control.observe import Observation, RunContext, observe
from airflow_cdc_provider.control.open_window import run_beside
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.control.rewind import rewinding_tables
from airflow_cdc_provider.core.decisions.facts import Facts
from airflow_cdc_provider.core.decisions.left_tables import left_tables
from airflow_cdc_provider.core.decisions.pending_resyncs import is_carried_out
from airflow_cdc_provider.core.decisions.run_decision import CLOSE_WINDOW, RunDecision, decide
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.state_rows import Lane
from airflow_cdc_provider.core.table.states import TableState


@dataclass(frozen=True)
class DryRun:
    """``begun``: an answer, a rewind, a pause or a drop waits for the next run, which carries it out before it
    decides."""

    facts: Facts
    decision: RunDecision
    begun: bool = False

    @property
    def has_work(self) -> bool:
        """Whether a run could make progress. False if it could only fail again, or wait for an operator."""
        facts, decision = self.facts, self.decision
        if self.begun:
            return True
        if decision.stop:
            return False
        copies = {} if facts.unselected else {one.task.table: one.task for one in facts.tables}
        commands = decision.plan.commands or any(
            one.kind in IMMEDIATE or left_tables(one, decision) or is_carried_out(one, copies) for one in facts.commands
        )
        pending = bool(decision.reopen or decision.idle is not None or commands)
        return pending or bool(set(decision.follow) - {CLOSE_WINDOW})


def dry_run(replicator: Replicator) -> DryRun:
    """The decision for a run that starts now; a lane that another run holds is not free. Raises what ``observe``
    raises."""
    free = {lane: replicator.state.holder(replicator.name, lane) is None for lane in Lane}
    beside = run_beside(replicator, "outlook")
    context = RunContext("outlook", stream_lane=free[Lane.STREAM], copy_lane=free[Lane.COPY], beside=beside)
    observation = observe(replicator, context)
    return DryRun(observation.facts, decide(observation.facts), _has_begun(replicator, observation))


def _has_begun(replicator: Replicator, observation: Observation) -> bool:
    states = observation.states
    copied = [table for table, current in states.items() if current.control is not None]
    rewinding = rewinding_tables(states, observation.facts.owner)
    failing = {
        row.table for row in replicator.state.tables(replicator.name).values() if row.state is TableState.FAILING
    }
    marked = marks_of_run(replicator, observation.facts)
    drops = [one for one in begun_drops(observation, marked) if one.table in states.keys() - failing]
    return bool(rewinding or drops or answered_questions(replicator, states) or paused_copies(replicator, copied))


def plain_plan(preview: DryRun) -> dict[str, Any]:
    """As plain JSON: the command line and the API print the same."""
    facts, decision = preview.facts, preview.decision
    return {
        "replicator": facts.definition.name,
        "next": list(decision.follow),
        "tables": [
            {"table": one.table, "action": one.action.value, "reason": one.reason} for one in decision.table_decisions
        ],
        "requests": [{"id": one.id, "kind": one.kind.value, "tables": list(one.tables)} for one in facts.commands],
        "notes": list(decision.notes),
        "stop": to_plain(decision.stop),
    }
