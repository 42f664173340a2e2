"""What the next run of a replicator would do. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.control.immediate_commands import IMMEDIATE
from airflow_cdc_provider.control.observe import RunContext, observe
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decisions.facts import Facts
from airflow_cdc_provider.core.decisions.left_tables import left_tables
from airflow_cdc_provider.core.decisions.run_decision import CLOSE_WINDOW, RunDecision, decide
from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.state_rows import Lane


@dataclass(frozen=True)
class DryRun:
    facts: Facts
    decision: RunDecision

    @property
    def has_work(self) -> bool:
        """Whether a run could make progress. False if it could only fail again, or wait for an operator."""
        decision = self.decision
        if decision.stop:
            return False
        commands = decision.plan.commands or any(
            one.kind in IMMEDIATE or left_tables(one, decision) for one in self.facts.commands
        )
        pending = bool(decision.reopen or decision.idle is not None or commands)
        return pending or bool(set(decision.follow) - {CLOSE_WINDOW})


def dry_run(replicator: Replicator) -> DryRun:
    """The decision for a run that starts now; a lane that another run holds is not free. Raises what ``observe``
    raises."""
    free = {lane: replicator.state.holder(replicator.name, lane) is None for lane in Lane}
    facts = observe(replicator, RunContext("outlook", stream_lane=free[Lane.STREAM], copy_lane=free[Lane.COPY])).facts
    return DryRun(facts, decide(facts))


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
