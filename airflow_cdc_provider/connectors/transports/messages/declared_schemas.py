"""Table schemas that somebody wrote down, for messages that tell none."""

from __future__ import annotations

import json
from pathlib import Path

from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.serde import from_plain
from airflow_cdc_provider.core.table.schema import TableSchema

FORM = '{"table": …, "columns": [{"name": …, "type": {"kind": …}}], "key": […]}, or a list of such'


def declared_schemas(path: str) -> dict[str, TableSchema]:
    """Table → schema; none without a path. Raises CheckFailed (SRC070)."""
    if not path:
        return {}
    try:
        told = json.loads(Path(path).read_bytes())
        schemas = [from_plain(TableSchema, one) for one in (told if isinstance(told, list) else [told])]
        return {schema.table: schema for schema in schemas}
    except OSError as error:
        found = error.strerror or type(error).__name__
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        found = f"not what is allowed ({type(error).__name__})"
    raise CheckFailed(
        Problem(
            "SRC070",
            "the file of table schemas cannot be read",
            where=path,
            found=found,
            allowed=FORM,
            do="mend `schemas` under `source`; `airflow cdc decode --schema` takes the same file",
        )
    )
