"""A commit without rows, by the library."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.table.control_record import ControlRecord
from airflow_cdc_provider.targets.delta.record_text import record_text


def append_empty(delta_table: Any, app_id: str, record: ControlRecord) -> None:
    import pyarrow
    from deltalake import CommitProperties, Transaction, write_deltalake

    write_deltalake(
        delta_table,
        pyarrow.schema(delta_table.schema().to_arrow()).empty_table(),
        mode="append",
        commit_properties=CommitProperties(
            custom_metadata={"userMetadata": record_text(record)},
            app_transactions=[Transaction(app_id, record.token)],
            max_commit_retries=0,
        ),
    )
