"""Wait until the source of a replicator has something new."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseSensorOperator, conf
from airflow.sdk.exceptions import AirflowFailException

from airflow_cdc_provider.operators.failures import TaskFailed, as_airflow_failures
from airflow_cdc_provider.triggers.changes import ChangesTrigger, changes_available

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class ChangesAvailableSensor(BaseSensorOperator):
    """Succeeds once a run of the replicator would have something to do: changes at the source, a table that is not
    copied yet, a request of an operator. Where the next run could only fail again, it goes on waiting.

    Put it before a ``TriggerDagRunOperator``, or give it an asset as outlet that the replicator's ``triggered_by``
    names::

        ChangesAvailableSensor(
            task_id="changes",
            definition=definition_of("/opt/airflow/dags/replicators/shop.yaml"),
            outlets=[Asset("shop_changes")],
            deferrable=True,
        )

    :param definition: what ``airflow_cdc_provider.factory.definition_of`` reads from the replicator's YAML
    :param deferrable: wait in the triggerer instead of on a worker
    """

    template_fields = ("definition",)
    template_fields_renderers = {"definition": "json"}  # noqa: RUF012  (declared so by Airflow)
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

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        """The definition is data: what looks like a template in it stays as it is, and is shown so."""

    def execute(self, context: Context) -> Any:
        if not self.deferrable:
            return super().execute(context)
        if not self.poke(context):
            trigger = ChangesTrigger(self.definition, self.poke_interval)
            self.defer(trigger=trigger, method_name="fired", timeout=timedelta(seconds=self.timeout))

    def poke(self, context: Context) -> bool:
        with as_airflow_failures():
            return changes_available(self.definition)

    def fired(self, context: Context, event: dict[str, Any]) -> None:
        """Raises where the trigger could not ask."""
        if "problem" in event:
            raise (TaskFailed if event["retryable"] else AirflowFailException)(event["problem"])
