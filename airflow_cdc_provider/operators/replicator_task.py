"""Base of the operators that need no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.state import open_state

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class ReplicatorTask(BaseOperator):
    """A task of a replicator that runs on the worker.

    :param definition: the replicator's definition, as ``airflow_cdc_provider.factory.definition_of`` returns it
    """

    template_fields = ("definition",)
    template_fields_renderers = {"definition": "json"}  # noqa: RUF012  (declared so by Airflow)

    def __init__(self, *, definition: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.definition = definition

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        """Does nothing: the definition is shown as a rendered field, but its text is never rendered as a template."""

    def replicator(self) -> Replicator:
        definition = from_plain(Definition, self.definition)
        return open_replicator(definition, secrets_of(definition), open_state())
