"""Reads the identities of tables from the catalog, and excludes changes that the stream carries."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from airflow_cdc_provider.connectors.sources.postgres.types import Domains
from airflow_cdc_provider.core.table.identity import (
    ColumnIdentity,
    StreamSettings,
    TableIdentity,
    TablePartition,
    UnloggedChanges,
)

if TYPE_CHECKING:
    from psycopg import Connection

    from airflow_cdc_provider.connectors.sources.postgres.schemas import CatalogTable

SAME_OUTPUT = {1043: 25, 1015: 1009}
"""varchar and varchar[] are printed like text and text[]."""

COLUMNS = """
SELECT a.attrelid::int8, c.relnatts, a.attname::text, a.attnum, a.atttypid::int8, a.xmin::text, a.atthasmissing,
       CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid) ELSE '' END
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY (%(tables)s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""

# A partition belongs to the table since the newest pg_inherits row between the two was inserted.
PARTITIONS = """
SELECT c.oid::int8, leaf.oid::int8, format('%%I.%%I', n.nspname, leaf.relname), leaf.relfilenode::int8,
       coalesce((SELECT i.xmin::text FROM pg_inherits i
                 WHERE i.inhrelid IN (SELECT relid FROM pg_partition_ancestors(leaf.oid))
                 ORDER BY age(i.xmin) LIMIT 1), '')
FROM pg_class c
CROSS JOIN LATERAL (SELECT c.oid AS relid WHERE c.relkind <> 'p'
                    UNION ALL SELECT relid FROM pg_partition_tree(c.oid) WHERE c.relkind = 'p' AND isleaf) tree
JOIN pg_class leaf ON leaf.oid = tree.relid JOIN pg_namespace n ON n.oid = leaf.relnamespace
WHERE c.oid = ANY (%(tables)s)
"""

# Types of columns, and their component types: of arrays, domains, ranges and composite types.
TYPES = """
WITH RECURSIVE used (root, oid) AS (
    SELECT DISTINCT attrelid, atttypid FROM pg_attribute
    WHERE attrelid = ANY (%(tables)s) AND attnum > 0 AND NOT attisdropped
  UNION
    SELECT used.root, part.oid FROM used JOIN pg_type t ON t.oid = used.oid CROSS JOIN LATERAL (
        SELECT t.typbasetype AS oid WHERE t.typtype = 'd'
        UNION ALL SELECT t.typelem WHERE t.typelem <> 0
        UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
        UNION ALL SELECT m.atttypid FROM pg_attribute m
                  WHERE t.typtype = 'c' AND m.attrelid = t.typrelid AND m.attnum > 0 AND NOT m.attisdropped) part
)
SELECT used.root::int8, t.oid::int8,
       (SELECT json_object_agg(e.oid::text, ARRAY[e.enumlabel, e.xmin::text])
        FROM pg_enum e WHERE e.enumtypid = t.oid),
       (SELECT string_agg(format('%%s:%%s:%%s', m.attnum, m.atttypid::int8, m.atttypmod), ',' ORDER BY m.attnum)
        FROM pg_attribute m WHERE m.attrelid = t.typrelid AND m.attnum > 0 AND NOT m.attisdropped)
FROM used JOIN pg_type t ON t.oid = used.oid WHERE t.typtype IN ('e', 'c')
"""

# Rows of the transaction that attached the partition are older than the pg_inherits row if their command was earlier.
# Without parameters: a percent sign in the name is itself.
ROWS_BEFORE_ATTACHMENT = """
SELECT EXISTS (
    SELECT FROM ONLY {partition} r CROSS JOIN (
        SELECT i.xmin, i.cmin::text::int8 AS command FROM pg_inherits i
        WHERE i.inhrelid IN (SELECT relid FROM pg_partition_ancestors({oid}::oid::regclass))
        ORDER BY age(i.xmin) LIMIT 1) link
    WHERE age(r.xmin) > age(link.xmin)
       OR r.xmin::text = link.xmin::text AND r.cmin::text::int8 < link.command)
"""
# A rebuilt index belongs to the same constraint.
KEYS = """
SELECT conrelid::int8, oid::int8 FROM pg_constraint WHERE conrelid = ANY (%(tables)s) AND contype = 'p'
"""
FILES = "SELECT xmin::text FROM pg_class WHERE oid = ANY (%(oids)s)"
READABLE = "SELECT pg_relation_size({oid}) = 0, has_table_privilege({oid}::oid, 'SELECT')"


class Session(Protocol):
    """A database session of any library."""

    def execute(self, query: str, params: Mapping[str, Any], /) -> Iterable[Any]: ...


def read_identities(connection: Session, tables: Sequence[CatalogTable], domains: Domains) -> dict[str, TableIdentity]:
    """The identities of ``tables``, with the columns of their schemas. They reflect every transaction that was
    committed before the call."""
    oids = {"tables": [table.oid for table in tables]}
    columns, last_numbers = _columns(connection, oids, {table.oid: table for table in tables}, domains)
    labels, composites = _types(connection, oids)
    keys = {table: str(constraint) for table, constraint in connection.execute(KEYS, oids)}
    partitions: dict[int, dict[str, TablePartition]] = {}
    for table, oid, name, file, joined in connection.execute(PARTITIONS, oids):
        partitions.setdefault(table, {})[str(oid)] = TablePartition(name, str(file), joined)
    return {
        table.schema.table: TableIdentity(
            str(table.oid),
            columns.get(table.oid, {}),
            last_numbers.get(table.oid, 0),
            {id: label for id, (label, _) in labels.get(table.oid, {}).items()},
            composites.get(table.oid, {}),
            partitions.get(table.oid, {}),
            label_versions={id: version for id, (_, version) in labels.get(table.oid, {}).items()},
            key=keys.get(table.oid, ""),
        )
        for table in tables
    }


def with_memberships(
    identities: Mapping[str, TableIdentity], memberships: Mapping[str, int], settings: Mapping[str, StreamSettings]
) -> dict[str, TableIdentity]:
    """``memberships``: table -> oid of its membership in the publication. ``settings``: of the publication, by
    table."""
    members = {name: str(memberships.get(name, "")) for name in identities}
    return {
        name: replace(identity, membership=members[name], sent=settings.get(name))
        for name, identity in identities.items()
    }


def had_rows_when_attached(connection: Connection[Any], partition: str, oid: str) -> bool:
    """Whether an attached partition has, or may have, rows that are older than its attachment: the stream does not
    carry these."""
    empty, readable = _row(connection, READABLE.format(oid=int(oid)))
    if empty:
        return False
    query = ROWS_BEFORE_ATTACHMENT.format(partition=partition, oid=int(oid))
    return not readable or bool(_row(connection, query)[0])


def with_rewritten_additions(changes: UnloggedChanges, now: TableIdentity) -> UnloggedChanges:
    """The file of a new partition has the partition's oid. In another one are rows that the stream may not carry,
    under the transactions that wrote them: a partition that was unlogged at first."""
    rewritten = any(now.partitions[oid].file != oid for oid in changes.attached)
    return replace(changes, rewritten=changes.rewritten or rewritten)


def new_files_by(connection: Connection[Any], oids: Iterable[str], transactions: Collection[str]) -> bool:
    """Whether the newest alteration of each of these tables is by one of ``transactions``."""
    found = connection.execute(FILES.encode(), {"oids": [int(oid) for oid in oids]}).fetchall()
    return {xmin for (xmin,) in found} <= set(transactions)


def without_streamed(changes: UnloggedChanges, truncated: bool, attached: Sequence[str]) -> UnloggedChanges:
    """``changes`` without those that the stream carries: a rewrite by TRUNCATE, after which all rows are in the stream
    unless a column was recomputed or a partition was changed outside the table, and the rows of a partition that was
    empty when it was attached. ``attached``: names of the partitions that were not empty."""
    return replace(
        changes,
        rows=(
            *changes.rows,
            *(f"partition {name} was detached or dropped with its rows" for name in changes.detached),
            *(f"partition {name} was attached with rows in it" for name in attached),
        ),
        attached=(),
        detached=(),
        rewritten=changes.rewritten and (changes.recomputed or changes.rejoined or not truncated),
    )


def _columns(
    connection: Session, oids: dict[str, list[int]], tables: dict[int, CatalogTable], domains: Domains
) -> tuple[dict[int, dict[str, ColumnIdentity]], dict[int, int]]:
    columns: dict[int, dict[str, ColumnIdentity]] = {}
    last_numbers: dict[int, int] = {}
    for table, last_number, name, number, type_oid, altered, filled, expression in connection.execute(COLUMNS, oids):
        last_numbers[table] = last_number
        if expression and name not in tables[table].schema.names:
            continue
        output, unknown_fill = _output(type_oid, domains), name in tables[table].unknown_initial
        identity = ColumnIdentity(number, output, altered, filled, unknown_fill, expression=expression)
        columns.setdefault(table, {})[name] = identity
    return columns, last_numbers


def _types(
    connection: Session, oids: dict[str, list[int]]
) -> tuple[dict[int, dict[str, list[str]]], dict[int, dict[str, str]]]:
    """The labels with their versions, and the attributes of composite types, by table."""
    labels: dict[int, dict[str, list[str]]] = {}
    composites: dict[int, dict[str, str]] = {}
    for table, oid, enum, attributes in connection.execute(TYPES, oids):
        if enum is not None:
            labels.setdefault(table, {}).update(enum if isinstance(enum, dict) else json.loads(enum))
        if attributes is not None:
            composites.setdefault(table, {})[str(oid)] = attributes
    return labels, composites


def _output(oid: int, domains: Domains) -> str:
    """The same text for all types that are printed alike. A domain is printed like its base type."""
    while oid in domains:
        oid, _ = domains[oid]
    return str(SAME_OUTPUT.get(oid, oid))


def _row(connection: Connection[Any], query: str) -> tuple[Any, ...]:
    row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return tuple(row)
