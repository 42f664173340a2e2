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
        base = conf.get("api", "base_url", fallback="").rstrip("/")
        name: str = operator.definition["name"]  # type: ignore[attr-defined]
        return f"{base}/dags/{quote(name)}/plugin/replicator"
