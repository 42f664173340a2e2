"""Table schemas from a file, for messages without a schema."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.schema import TableSchema

FORM = '{"table": …, "columns": [{"name": …, "type": {"kind": …}}], "key": […]}, or a list of such'


def declared_schemas(path: str) -> dict[str, TableSchema]:
    """Table → schema; none without a path. Raises CheckFailed (SRC070)."""
    if not path:
        return {}
    try:
        content = json.loads(Path(path).read_bytes())
        schemas = [from_plain(TableSchema, item) for item in (content if isinstance(content, list) else [content])]
        return {schema.table: schema for schema in schemas}
    except OSError as error:
        found = error.strerror or type(error).__name__
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        found = f"content of another form ({type(error).__name__})"
    raise CheckFailed.of(
        "SRC070",
        "the file of table schemas cannot be read",
        where=path,
        found=found,
        allowed=FORM,
        do="correct `schemas` under `source`, or the file; `airflow cdc decode --schema` reads the same file",
    )
