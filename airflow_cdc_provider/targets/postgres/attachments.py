"""A new copy of a table gets what the old one has beside its rows, or is refused.

All is read from the catalogs before the old table is dropped and again when the new one has its name: what is not
there then is not lost unseen, because the transaction ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets.database import errors
from airflow_cdc_provider.targets.postgres.catalog_kinds import (
    COLUMN_PROPERTIES,
    GRANTEE,
    INDEX_PROPERTIES,
    OBJECTS,
    TABLE_PROPERTIES,
    TEXTS,
)

TABLE = """
t AS (SELECT c.*, quote_ident(n.nspname) || '.' || quote_ident(c.relname) AS named, %(own_index)s::text AS own_index
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = %(table)s::regclass)"""


def _union(queries: Sequence[str]) -> str:
    """With the place of each query."""
    return " UNION ALL ".join(f"SELECT {place}, q.* FROM ({query}) q" for place, query in enumerate(queries))


def _of_table(query: str) -> str:
    return f"SELECT 'pg_class'::regclass::oid, (SELECT oid FROM t), p.* FROM ({query}) p"


OBJECTS_OF_TABLE = f"objects (place, class, object, number, statement) AS ({_union([*OBJECTS.values()])})"
PROPERTIES = [*map(_of_table, [*COLUMN_PROPERTIES.values(), *TABLE_PROPERTIES.values()])]
ATTACHED = f"""
WITH {TABLE}, {OBJECTS_OF_TABLE.replace("%", "%%")},
others (place, class, object, number, statement) AS ({
    _union([*TEXTS.values(), *INDEX_PROPERTIES.values(), *PROPERTIES]).replace("%", "%%")
}),
found AS (SELECT 0 AS kind, o.* FROM objects o UNION ALL SELECT 1, o.* FROM others o)
SELECT pg_describe_object(f.class, f.object, f.number), ARRAY(
  SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = t.oid AND a.attnum > 0 AND (
    f.class = 'pg_class'::regclass AND f.object = t.oid AND f.number = a.attnum OR EXISTS (
      SELECT FROM pg_depend d WHERE (d.classid, d.objid, d.refclassid, d.refobjid, d.refobjsubid, d.deptype)
                                  = (f.class, f.object, 'pg_class'::regclass, t.oid, a.attnum, 'a')))), f.statement,
  f.kind = 0
FROM t CROSS JOIN found f ORDER BY f.kind, f.place, f.object, f.number, f.statement
"""
"""Columns: those without which the server itself drops the object."""

STAYS_BEHIND = f"""
WITH {TABLE}, {OBJECTS_OF_TABLE.replace("%", "%%")}
SELECT DISTINCT coalesce(pg_describe_object('pg_class'::regclass, r.ev_class, 0),
                         pg_describe_object(d.classid, d.objid, d.objsubid))
FROM t JOIN pg_type y ON y.oid = t.reltype JOIN pg_depend d ON (d.refclassid, d.refobjid) IN (
  ('pg_class'::regclass, t.oid), ('pg_type'::regclass, y.oid), ('pg_type'::regclass, y.typarray))
LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
WHERE (d.classid, d.objid) NOT IN (SELECT class, object FROM objects)
  AND (d.classid, d.objid) NOT IN (('pg_type'::regclass, y.oid), ('pg_type'::regclass, y.typarray))
  AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (
    SELECT i.indexrelid FROM pg_index i WHERE i.indrelid = t.oid UNION ALL SELECT t.reltoastrelid))
  AND NOT (d.classid = 'pg_constraint'::regclass AND d.objid IN (
    SELECT k.oid FROM pg_constraint k WHERE k.conrelid = t.oid AND k.contype IN ('p', 'n', 't')))
  AND NOT (d.classid = 'pg_trigger'::regclass AND d.objid IN (SELECT g.oid FROM pg_trigger g WHERE g.tgisinternal))
UNION ALL
SELECT t.named || ' inherits from ' || pg_describe_object('pg_class'::regclass, h.inhparent, 0)
FROM t JOIN pg_inherits h ON h.inhrelid = t.oid
ORDER BY 1
"""
"""What depends on the table, except what each copy has itself: key, types, storage of long values."""

REVOKES = f"""
SELECT DISTINCT 'REVOKE ALL ON TABLE ' || %(table)s::text || ' FROM ' || {GRANTEE} || ' CASCADE'
FROM pg_class c CROSS JOIN aclexplode(c.relacl) g WHERE c.oid = %(table)s::regclass AND g.grantee <> c.relowner
"""
"""Of privileges that default privileges gave to a new table."""

COLUMNS = """
SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped
"""


@dataclass(frozen=True)
class Attachment:
    """``columns``: it ends with any of them. ``statement`` creates it. ``is_object``: not only a property of another
    object."""

    what: str
    columns: frozenset[str]
    statement: str
    is_object: bool

    @property
    def identity(self) -> str:
        """The same in each copy. The statement of an object depends on the types and the order of the columns."""
        return self.what if self.is_object else self.statement


def stays_behind(cursor: Any, table: str, own_index: str) -> list[str]:
    """What depends on a table and cannot get a new copy. ``table``: as SQL. ``own_index``: of the copy."""
    cursor.execute(STAYS_BEHIND, {"table": table, "own_index": own_index})
    return [str(what) for (what,) in cursor.fetchall()]


def attached(cursor: Any, table: str, own_index: str) -> list[Attachment]:
    """What a new copy of a table has to get, in the order in which it can."""
    cursor.execute(ATTACHED, {"table": table, "own_index": own_index})
    found = cursor.fetchall()
    return [Attachment(what, frozenset(columns), statement, is_object) for what, columns, statement, is_object in found]


def attach(cursor: Any, table: str, own_index: str, before: Sequence[Attachment], where: str) -> None:
    """Raises Blocked (TGT097) where the new copy cannot get it. ``before``: of the old copy."""
    psycopg = load_library("psycopg", "target", "postgres")
    refusals = (psycopg.ProgrammingError, psycopg.NotSupportedError, psycopg.IntegrityError, psycopg.DataError)
    cursor.execute(COLUMNS, (table,))
    columns = {name for (name,) in cursor.fetchall()}
    due = [one for one in before if one.columns <= columns]
    cursor.execute(REVOKES, {"table": table})
    for (revoke,) in cursor.fetchall():
        cursor.execute(revoke)
    for one in due:
        try:
            cursor.execute(one.statement)
        except refusals as error:
            raise errors.not_carried_over(where, f"{one.what}: {error.diag.message_primary}") from error
    present = {one.identity for one in attached(cursor, table, own_index)}
    if missing := [one for one in due if one.identity not in present]:
        raise errors.not_carried_over(where, ", ".join(f"{one.what} ({one.statement})" for one in missing))
