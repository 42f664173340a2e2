"""Values of columns as canonical JSON. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import partial
from json.encoder import encode_basestring
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.jsonable import base64_of, number_or_text
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
            return repr(value) if math.isfinite(value) else json.dumps(number_or_text(value))
        case Kind.DECIMAL:
            return f'"{value:f}"'
        case Kind.DATE | Kind.TIMESTAMP:
            return f'"{value.isoformat()}"'
        case Kind.TIMESTAMPTZ:
            return f'"{value.replace(tzinfo=None).isoformat()}Z"'
        case Kind.BYTES:
            return f'"{base64_of(value)}"'
        case _:
            return encode_basestring(value)


def canonical_writer(kind: LogicalType) -> Callable[[Any], str]:
    """``canonical_value`` of values other than NULL, for one type, which is faster."""
    match kind.kind:
        case Kind.INT16 | Kind.INT32 | Kind.INT64:
            return str
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            return encode_basestring
        case Kind.DECIMAL:
            return lambda value: f'"{value:f}"'
        case _:
            return partial(canonical_value, kind)
