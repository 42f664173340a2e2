"""What the operators and sensors of a replicator have in common."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink

from airflow_cdc_provider.control.replicator import Replicator, open_replicator
from airflow_cdc_provider.control.replicator_changes import require_unchanged
from airflow_cdc_provider.core.printable import printable
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.spec.definition import Definition
from airflow_cdc_provider.hooks.connections import secrets_of
from airflow_cdc_provider.hooks.state import open_state
from airflow_cdc_provider.links.replicator import ReplicatorLink

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class HasDefinition:
    """An operator with the definition as a template field: it is shown, but its text is never rendered as a
    template. Its tasks have a link to the page of the replicator."""

    operator_extra_links: Collection[BaseOperatorLink] = (ReplicatorLink(),)
    template_fields: Collection[str] = ("definition",)
    template_fields_renderers = {"definition": "json"}  # noqa: RUF012  (declared so by Airflow)

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        """Does nothing."""


class ReplicatorTask(HasDefinition, BaseOperator):
    """A task of a replicator that runs on the worker.

    :param definition: the replicator's definition, as ``airflow_cdc_provider.factory.definition_of`` returns it
    """

    def __init__(self, *, definition: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.definition = definition

    def log_line(self, line: str) -> None:
        self.log.info("%s", printable(line))

    def replicator(self) -> Replicator:
        return open_with_connections(self.definition)


def open_with_connections(plain: dict[str, Any]) -> Replicator:
    """Raises Blocked if the replicator was deleted, renamed or moved."""
    definition, state = from_plain(Definition, plain), open_state()
    require_unchanged(state, definition)
    return open_replicator(definition, secrets_of(definition), state)
