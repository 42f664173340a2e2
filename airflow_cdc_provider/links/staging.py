"""The link from a Spark task to the folder with its step file and result file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class StagingLink(BaseOperatorLink):
    """Empty until a job is submitted or an earlier result is taken."""

    name = "Step files"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        folder = getattr(operator, "step_folder_url", "")
        return folder if "://" in folder or not folder else Path(folder).as_uri()
