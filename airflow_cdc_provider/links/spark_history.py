"""The link from a task to its Spark application in the history server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class SparkHistoryLink(BaseOperatorLink):
    """For Spark steps. Airflow shows no link if it is empty: without a history server, and for a step that did not need
    Spark."""

    name = "Spark history"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        return str(operator.spark_history_url())  # type: ignore[attr-defined]
