"""From a task to the folder in which its Spark job left what it was told and what it said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class StagingLink(BaseOperatorLink):
    """Empty until a job was submitted, or its earlier result found."""

    name = "Step files"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        folder = getattr(operator, "step_folder_url", "")
        return folder if "://" in folder or not folder else Path(folder).as_uri()
