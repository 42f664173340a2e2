"""The link from a task to the page of its replicator."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink, conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class ReplicatorLink(BaseOperatorLink):
    """For operators with the definition of a replicator."""

    name = "Replicator"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return page_of(operator.definition["name"])  # type: ignore[attr-defined]


def page_of(replicator: str) -> str:
    """The URL of its page."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    return f"{base}/dags/{quote(replicator)}/plugin/replicator"
