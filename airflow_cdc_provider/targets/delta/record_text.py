"""A control record as text in a commit's metadata."""

from __future__ import annotations

import json

from airflow_cdc_provider.core.serde import to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord


def record_text(record: ControlRecord) -> str:
    return json.dumps(to_plain(record), ensure_ascii=False, separators=(",", ":"))
