"""A control record as the text that stands in a commit's metadata."""

from __future__ import annotations

import json

from airflow_cdc_provider.core.cursors import ControlRecord
from airflow_cdc_provider.core.plain import to_plain


def record_text(record: ControlRecord) -> str:
    return json.dumps(to_plain(record), ensure_ascii=False, separators=(",", ":"))
