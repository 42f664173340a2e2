"""Values of columns as canonical JSON. Pure."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.core.table.schema import Kind, LogicalType


def canonical_value(kind: LogicalType, value: Any) -> str:
    """``value``: of the kind, None for NULL; timestamps with time zone are in UTC."""
    if value is None:
        return "null"
    match kind.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return str(value)
        case Kind.FLOAT32 | Kind.FLOAT64:
            return repr(value) if math.isfinite(value) else json.dumps(_special_float(value))
        case Kind.DECIMAL:
            return f'"{value:f}"'
        case Kind.DATE | Kind.TIMESTAMP:
            return f'"{value.isoformat()}"'
        case Kind.TIMESTAMPTZ:
            return f'"{value.replace(tzinfo=None).isoformat()}Z"'
        case Kind.BYTES:
            return f'"{b64encode(value).decode("ascii")}"'
        case _:
            return encode_basestring(value)


def _special_float(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
