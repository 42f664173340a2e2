"""The Spark steps of a replicator's DAG: write a step file, submit the job, read its result file."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.links.staging import StagingLink
from airflow_cdc_provider.operators.attempt import Attempt
from airflow_cdc_provider.operators.failures import as_airflow_failures

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class CdcSparkOperator(BaseOperator):
    """Run one step of a replicator as a Spark application. Returns a summary: tables by outcome, rows, window.

    The task is skipped where there is nothing to do, or where somebody newer took over. A table that fails does not
    fail the task: it stands in the result, and ``close_window`` fails for it. Killed before its commit, a step has
    changed nothing; killed after it, the next attempt finds the commit in the target.

    :param step: ``snapshot``, ``extract``, ``stage``, ``merge``, ``resync``, ``replay`` or ``verify``
    :param definition: the replicator's definition as ``core.plain.to_plain`` gives it; connections are ids in it
    """

    template_fields = ("step", "definition")
    template_fields_renderers = {"definition": "json"}  # noqa: RUF012  (declared so by Airflow)
    operator_extra_links = (StagingLink(),)
    ui_color = "#fbe3cf"

    def __init__(self, *, step: str, definition: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.definition = definition
        self.step_folder_url = ""
        self._attempt: Attempt | None = None

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        """The definition is data: what looks like a template in it stays as it is, and is shown so."""

    def execute(self, context: Context) -> dict[str, Any]:
        ti = context["ti"]
        with as_airflow_failures():
            definition = from_plain(Definition, self.definition)
            self._attempt = Attempt(StepKind(self.step), definition, ti.run_id, ti.task_id, ti.try_number, open_state())
            try:
                result = self._attempt.result()
            finally:
                if self._attempt.folder is not None:
                    self.step_folder_url = self._attempt.folder.url
        self._tell(result)
        return summary(result)

    def on_kill(self) -> None:
        """Ends the driver at once. The attempt stays open until the end was seen: by this task, or by the next."""
        if self._attempt is not None:
            self._attempt.kill()

    def _tell(self, result: StepResult) -> None:
        """One line per table. Failing and blocked ones are for close_window to fail on."""
        for table in result.tables:
            say = self.log.warning if table.outcome in (Outcome.FAILING, Outcome.BLOCKED) else self.log.info
            say("%s: %s, %d rows %s", table.table, table.outcome, table.rows, table.problem or "")


def summary(result: StepResult) -> dict[str, Any]:
    """What goes into XCom: figures only."""
    window = {"window": result.window.window, "records": result.window.records} if result.window else {}
    return {
        "step": result.kind.value,
        "attempt": result.attempt,
        "tables": dict(Counter(table.outcome.value for table in result.tables)),
        "rows": sum(table.rows for table in result.tables),
        "seconds": result.phases,
        **window,
    }
