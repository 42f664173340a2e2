"""Names of tables in the schema-change topic. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from airflow_cdc_provider.connectors.decoders.common.dead_letters import WRONG_VALUE, DecodeError
from airflow_cdc_provider.core.table.source_names import table_name

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
PARTS = {"mysql": 2, "mariadb": 2, "sqlserver": 3, "oracle": 2}
"""The number of trailing parts of an id that form the table name."""


def changed_table(connector: str, change: Mapping[str, Any]) -> str:
    """From ``"db"."t"``. For Oracle, the database comes first, which topics do not contain."""
    id_ = change.get("id")
    parts = [part.replace('""', '"') for part in QUOTED.findall(id_)] if isinstance(id_, str) else []
    if not parts or ".".join(f'"{part}"' for part in QUOTED.findall(str(id_))) != id_:
        raise DecodeError(WRONG_VALUE, "a table change without a valid id")
    return table_name(*parts[-PARTS.get(connector, 2) :])
