"""Operators around a new copy: they take the tables out of the stream before it and put them back after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from airflow_cdc_provider.control.reconcile import pause_stream, resume_stream
from airflow_cdc_provider.operators.failures import as_airflow_failures
from airflow_cdc_provider.operators.replicator_task import ReplicatorTask

if TYPE_CHECKING:
    from airflow.sdk import Context


class PauseStreamOperator(ReplicatorTask):
    """Fence the tables to be copied again into state ``resyncing``: the target then rejects stream commits of any
    running attempt. Skipped if there is no such table, or if another run holds the copy lane.
    """

    ui_color = "#f3ecdf"

    def execute(self, context: Context) -> list[str]:
        with as_airflow_failures():
            tables = pause_stream(self.replicator(), context["dag_run"].run_id, self.log_line)
        if not tables:
            raise AirflowSkipException("no table to copy again in this run")
        return list(tables)


class ResumeStreamOperator(ReplicatorTask):
    """Fence the tables whose new copy is committed back to ``replicating``. The others stay ``resyncing``: the next run
    copies them.
    """

    ui_color = "#f3ecdf"

    def execute(self, context: Context) -> list[str]:
        with as_airflow_failures():
            return list(resume_stream(self.replicator(), context["dag_run"].run_id, self.log_line))
