"""The sensor that waits for work for a replicator."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_cdc_provider.operators.failures import TaskFailed, as_airflow_failures
from airflow_cdc_provider.operators.replicator_task import HasDefinition
from airflow_cdc_provider.triggers.changes import ChangesTrigger, changes_available

if TYPE_CHECKING:
    from airflow.sdk import Context


class ChangesAvailableSensor(HasDefinition, BaseSensorOperator):
    """Waits until a run of the replicator would make progress: changes at the source, a table without a copy, or a
    pending command. Does not succeed while the next run could only fail again.

    Place it before a ``TriggerDagRunOperator``, or give it an outlet asset that ``triggered_by`` of the replicator
    lists::

        ChangesAvailableSensor(
            task_id="changes",
            definition=definition_of("/opt/airflow/dags/replicators/shop.yaml"),
            outlets=[Asset("shop_changes")],
            deferrable=True,
        )

    :param definition: the replicator's definition, as ``airflow_cdc_provider.factory.definition_of`` returns it
    :param deferrable: run the sensor in deferrable mode
    """

    ui_color = "#dfe9f3"

    def __init__(
        self,
        *,
        definition: dict[str, Any],
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.definition = definition
        self.deferrable = deferrable

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        if not self.poke(context):
            trigger = ChangesTrigger(self.definition, self.poke_interval)
            self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def poke(self, context: Context) -> bool:
        with as_airflow_failures():
            return changes_available(self.definition)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> None:
        """Called when the trigger fires. Raises the problem of its event, if there is one."""
        if "problem" in event:
            raise (TaskFailed if event["retryable"] else AirflowFailException)(event["problem"])
