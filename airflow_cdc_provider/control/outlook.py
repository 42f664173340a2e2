"""What the next run of a replicator would do. Nothing is done."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_cdc_provider.control.gathering import Run, gather
from airflow_cdc_provider.control.replicator import Replicator
from airflow_cdc_provider.core.decide import CLOSE_WINDOW, Decision, decide
from airflow_cdc_provider.core.facts import Facts
from airflow_cdc_provider.core.index import Lane


@dataclass(frozen=True)
class Outlook:
    facts: Facts
    decision: Decision

    @property
    def worth_a_run(self) -> bool:
        """Whether a run could move anything. One that could only fail again waits for its time, or for an operator."""
        decision = self.decision
        if decision.stop:
            return False
        ahead = bool(decision.reopen or decision.idle is not None or self.facts.commands)
        return ahead or bool(set(decision.follow) - {CLOSE_WINDOW})


def outlook(replicator: Replicator) -> Outlook:
    """As for a run that begins now: lanes that another run holds are not free. Raises what ``gather`` raises."""
    free = {lane: replicator.state.holder(replicator.name, lane) is None for lane in Lane}
    facts = gather(replicator, Run("outlook", stream_lane=free[Lane.STREAM], copy_lane=free[Lane.COPY])).facts
    return Outlook(facts, decide(facts))
