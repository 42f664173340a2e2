"""The operator of a replicator's Spark steps: write the step file, submit the job, read its result file."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, StepResult
from airflow_cdc_provider.core.lineage.copies import copies_of
from airflow_cdc_provider.core.printable import printable
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.links.spark_history import SparkHistoryLink
from airflow_cdc_provider.operators.attempt import Attempt
from airflow_cdc_provider.operators.failures import as_airflow_failures
from airflow_cdc_provider.operators.replicator_task import HasDefinition

if TYPE_CHECKING:
    from airflow.sdk import Context


class CdcSparkOperator(HasDefinition, BaseOperator):
    """Run one step of a replicator as a Spark application. Returns a summary: tables by outcome, rows, window.

    The task is skipped if there is nothing to do, or if a newer attempt has taken over. A failing table does not fail
    the task: the result contains the problem, and ``close_window`` fails. A step killed before its commit has changed
    nothing; if it is killed after the commit, the next attempt finds the commit in the target.

    :param step: ``snapshot``, ``extract``, ``stage``, ``merge``, ``resync``, ``replay`` or ``verify``
    :param definition: the replicator's definition, as ``airflow_cdc_provider.factory.definition_of`` returns it
    """

    operator_extra_links = (*HasDefinition.operator_extra_links, SparkHistoryLink())
    template_fields = ("step", "definition")
    ui_color = "#fbe3cf"

    def __init__(self, *, step: str, definition: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.step = step
        self.definition = definition
        self._attempt: Attempt | None = None
        self._result: StepResult | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        ti = context["ti"]
        with as_airflow_failures():
            definition = from_plain(Definition, self.definition)
            self._attempt = Attempt(StepKind(self.step), definition, ti.run_id, ti.task_id, ti.try_number, open_state())
            self.log.info("attempt %s: in the name of its Spark application, and in its commits", self._attempt.id)
            try:
                result = self._result = self._attempt.result()
            finally:
                if self._attempt.folder is not None:
                    self.log.info("step files: %s", self._attempt.folder.url)
        self._log_tables(result)
        return summary(result)

    def on_kill(self) -> None:
        """Kill the driver. The attempt stays open until this task or the next one has seen the driver's end."""
        if self._attempt is not None:
            self._attempt.kill()

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Any:
        """The lineage of the copies that this step wrote or compared. Airflow's provider for OpenLineage calls it."""
        from airflow_cdc_provider.operators.lineage import operator_lineage

        if self._attempt is None or self._result is None:
            return None
        copies = copies_of(self._attempt.run.plan().tables, self._result)
        return operator_lineage(self._attempt.definition, self._attempt.secrets, copies)

    def spark_history_url(self) -> str:
        """The page of this step's Spark application in the history server, also if the step failed; else empty."""
        if self._attempt is None or self._attempt.folder is None:
            return ""
        result = self._attempt.folder.result()
        return result.history_url if result else ""

    def _log_tables(self, result: StepResult) -> None:
        """One line per table. Failing and blocked tables fail close_window, not this task."""
        for table in result.tables:
            log = self.log.warning if table.outcome in (Outcome.FAILING, Outcome.BLOCKED) else self.log.info
            engine = f" ({table.engine})" if table.engine else ""
            line = f"{table.table}: {table.outcome}, {table.rows} rows{engine} {table.problem or ''}"
            log("%s", printable(line.rstrip()))


def summary(result: StepResult) -> dict[str, Any]:
    """The XCom value: no row values."""
    window = {"window": result.window.window, "records": result.window.records} if result.window else {}
    return {
        "step": result.kind.value,
        "attempt": result.attempt,
        **({"application": result.application} if result.application else {}),
        "tables": dict(Counter(table.outcome.value for table in result.tables)),
        "rows": sum(table.rows for table in result.tables),
        "engines": {table.table: str(table.engine) for table in result.tables if table.engine},
        "costs": {table.table: table.cost for table in result.tables if table.cost},
        "seconds": result.phases,
        **window,
    }
