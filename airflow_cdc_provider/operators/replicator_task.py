"""A task of a replicator that needs no Spark."""

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
    """Base of the worker's own tasks.

    :param definition: the replicator's definition as ``core.plain.to_plain`` gives it; connections are ids in it
    """

    template_fields = ("definition",)
    template_fields_renderers = {"definition": "json"}  # noqa: RUF012  (declared so by Airflow)

    def __init__(self, *, definition: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.definition = definition

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        """The definition is data: what looks like a template in it stays as it is, and is shown so."""

    def replicator(self) -> Replicator:
        definition = from_plain(Definition, self.definition)
        return open_replicator(definition, secrets_of(definition), open_state())
