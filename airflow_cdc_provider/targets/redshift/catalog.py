"""What Redshift's catalog says of tables. Its queries run on the leader node, where names have a type of their own."""

from __future__ import annotations

SYSTEM_COLUMNS = frozenset({"oid", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid", "insertxid", "deletexid"})
"""No column of a table may have such a name."""

COMMENT = """
SELECT COALESCE(d.description, '') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::REGCLASS
WHERE n.nspname = %s AND c.relname = %s
"""
COLUMNS = """
SELECT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
"""
TABLES = """
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND STRPOS(c.relname, %s) = 1 AND c.relkind = 'r'
"""
GRANTS = """
SELECT privilege_type, identity_type, identity_name, admin_option FROM svv_relation_privileges
WHERE namespace_name = %s AND relation_name = %s
"""


def grant(table: str, privilege: str, kind: str, name: str, grantable: object) -> str:
    """The statement of a row of ``GRANTS``."""
    grantee = "PUBLIC" if kind == "public" else '"' + str(name).replace('"', '""') + '"'
    whom = f"{kind.upper()} {grantee}" if kind in ("role", "group") else grantee
    option = " WITH GRANT OPTION" if kind == "user" and str(grantable).lower() in ("true", "t") else ""
    return f"GRANT {privilege} ON TABLE {table} TO {whom}{option}"
