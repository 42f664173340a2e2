"""A run without new changes on a worker: open and close it, in this process."""

from __future__ import annotations

import uuid

from airflow_cdc_provider.control.close_window import close_window
from airflow_cdc_provider.control.observe import RunContext
from airflow_cdc_provider.control.open_window import open_window
from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.decisions.run_decision import CLOSE_WINDOW
from airflow_cdc_provider.core.decisions.steps import StepKind
from airflow_cdc_provider.state.store import StateStore
from tests.bench.rig import submit
from tests.spark import replicator as by_hand


def settled(replicator: by_hand.Replicator, state: StateStore) -> Replicator:
    """The same replicator, as the operators open it, after a first run that opened the stream and copied its tables."""
    opened = open_replicator(replicator.definition, replicator.secrets, state)
    run_id = uuid.uuid4().hex
    plan = open_window(opened, RunContext(run_id), print).plan
    submit(replicator, replicator.step(StepKind.SNAPSHOT, window=plan.sealed, owner=plan.owner))
    close_window(opened, run_id, [], print)
    return opened


def run_idle(opened: Replicator) -> None:
    run_id = uuid.uuid4().hex
    decision = open_window(opened, RunContext(run_id), lambda _: None)
    assert decision.follow == (CLOSE_WINDOW,), decision.follow
    assert not close_window(opened, run_id, [], lambda _: None).problems
