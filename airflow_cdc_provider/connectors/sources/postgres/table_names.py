"""Tables that queries of the catalog look for: by schema and name, of which both may have dots."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_cdc_provider.core.table.source_names import schema_and_table

OF_TABLES = "(n.nspname, c.relname) IN (SELECT * FROM unnest(%(schemas)s::text[], %(names)s::text[]))"
"""``n`` is pg_namespace, ``c`` pg_class."""


def in_sql(tables: Iterable[str]) -> dict[str, list[str]]:
    """The parameters of ``OF_TABLES``."""
    pairs = schema_and_table(tables)
    return {"schemas": [schema for schema, _ in pairs], "names": [name for _, name in pairs]}
