"""What a full copy writes into the columns of a history."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from airflow_cdc_provider.connectors.arrow_types import arrow_type
from airflow_cdc_provider.core.log.change_records import Operation
from airflow_cdc_provider.core.spec.history import History
from airflow_cdc_provider.core.table.history import ADDED, COMMIT_TIME, IS_CURRENT, OPERATION, SEQUENCE, VALID_FROM


def copied_columns(history: History, sequence: str, at: datetime) -> dict[str, pa.Scalar]:
    """The same for all rows of a copy: each of them is the first version of its row, and a change of its own."""
    values = {SEQUENCE: sequence, VALID_FROM: at, IS_CURRENT: True, OPERATION: Operation.READ.value, COMMIT_TIME: at}
    return {name: pa.scalar(values.get(name), arrow_type(kind)) for name, kind in ADDED[history].items()}
