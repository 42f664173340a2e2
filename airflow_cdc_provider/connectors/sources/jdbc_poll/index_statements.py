"""Statements of the system at hand that a remedy names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex

from airflow_cdc_provider.connectors.sources.jdbc_poll.catalog import PolledTable

ENFORCE: Mapping[str, str] = {
    "postgresql": "add the key to each partition of {table}, and attach its index: ALTER INDEX … ATTACH PARTITION …",
    "mssql": "ALTER INDEX ALL ON {table} REBUILD",
    "oracle": "ALTER TABLE {table} ENABLE VALIDATE PRIMARY KEY; before, ALTER INDEX … REBUILD if its index is unusable",
}


def prove_key(dialect: sa.Dialect, described: PolledTable, key: Sequence[str]) -> str:
    """What makes a key unique. A primary key that is not enforced needs no second index."""
    if described.unenforced_key and set(described.schema.key) <= set(key) and dialect.name in ENFORCE:
        name = dialect.identifier_preparer.format_table(_table(described, ()))
        return ENFORCE[dialect.name].format(table=name)
    return create_index(dialect, described, key, unique=True)


def create_index(dialect: sa.Dialect, described: PolledTable, columns: Sequence[str], unique: bool = False) -> str:
    table = _table(described, columns)
    name = f"{'unique' if unique else columns[0]}_{described.name}"
    index = sa.Index(name, *(table.c[column] for column in columns), unique=unique)
    return str(CreateIndex(index).compile(dialect=dialect))


def _table(described: PolledTable, columns: Sequence[str]) -> sa.Table:
    named = (sa.Column(column, sa.Integer) for column in columns)
    return sa.Table(described.name, sa.MetaData(), *named, schema=described.namespace or None)
