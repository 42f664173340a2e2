"""What a table of PostgreSQL has beside its rows, by the catalog that contains it, as the statements that create it.

A test compares the keys with the catalogs and the columns that the server itself names. Queries of objects return
class, object, column and statement, those of properties column and statement. ``t`` is the table: its row of
``pg_class``, ``named`` (qualified) and ``own_index`` (the name of the index that each copy gets itself).
"""

from __future__ import annotations

from collections.abc import Mapping

OBJECTS: Mapping[str, str] = {
    "pg_index": """
SELECT 'pg_class'::regclass::oid, i.indexrelid, 0, pg_get_indexdef(i.indexrelid)
FROM t JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class x ON x.oid = i.indexrelid
WHERE i.indisvalid AND NOT i.indisprimary AND x.relname <> t.own_index AND NOT EXISTS (
  SELECT FROM pg_constraint k WHERE k.conrelid = t.oid AND k.conindid = i.indexrelid AND k.contype IN ('u', 'x'))""",
    "pg_constraint": """
SELECT 'pg_constraint'::regclass::oid, k.oid, 0,
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', t.named, k.conname, pg_get_constraintdef(k.oid))
FROM t JOIN pg_constraint k ON k.conrelid = t.oid WHERE k.contype IN ('c', 'u', 'x', 'f')""",
    "pg_statistic_ext": """
SELECT 'pg_statistic_ext'::regclass::oid, s.oid, 0, pg_get_statisticsobjdef(s.oid)
FROM t JOIN pg_statistic_ext s ON s.stxrelid = t.oid""",
    "pg_attrdef": """
SELECT 'pg_attrdef'::regclass::oid, d.oid, 0,
       format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT %s', t.named, a.attname, pg_get_expr(d.adbin, d.adrelid))
FROM t JOIN pg_attrdef d ON d.adrelid = t.oid JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.adnum
WHERE a.attgenerated = ''""",
    "pg_trigger": """
SELECT 'pg_trigger'::regclass::oid, g.oid, 0, pg_get_triggerdef(g.oid) || CASE g.tgenabled WHEN 'O' THEN '' ELSE
       format('; ALTER TABLE %s %s TRIGGER %I', t.named,
              CASE g.tgenabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END,
              g.tgname) END
FROM t JOIN pg_trigger g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal""",
    "pg_rewrite": """
SELECT 'pg_rewrite'::regclass::oid, r.oid, 0, pg_get_ruledef(r.oid) || CASE r.ev_enabled WHEN 'O' THEN '' ELSE
       format(' ALTER TABLE %s %s RULE %I', t.named,
              CASE r.ev_enabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END,
              r.rulename) END
FROM t JOIN pg_rewrite r ON r.ev_class = t.oid""",
    "pg_policy": """
SELECT 'pg_policy'::regclass::oid, p.oid, 0, format('CREATE POLICY %I ON %s AS %s FOR %s TO %s%s%s', p.polname, t.named,
       CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
       CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE'
                     ELSE 'ALL' END,
       (SELECT string_agg(CASE r WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END, ', ')
        FROM unnest(p.polroles) r),
       ' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')',
       ' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')')
FROM t JOIN pg_policy p ON p.polrelid = t.oid""",
    # Version 14 has neither columns nor filters.
    "pg_publication_rel": """
SELECT 'pg_publication_rel'::regclass::oid, r.oid, 0,
       format('ALTER PUBLICATION %I ADD TABLE %s%s%s', p.pubname, t.named,
       CASE WHEN to_jsonb(r) ->> 'prattrs' IS NOT NULL THEN
         (SELECT format(' (%s)', string_agg(quote_ident(name), ', '))
          FROM jsonb_array_elements_text(to_jsonb(v) -> 'attnames') name) END,
       ' WHERE (' || (to_jsonb(v) ->> 'rowfilter') || ')')
FROM t JOIN pg_publication_rel r ON r.prrelid = t.oid JOIN pg_publication p ON p.oid = r.prpubid
LEFT JOIN pg_publication_tables v ON v.pubname = p.pubname AND format('%I.%I', v.schemaname, v.tablename) = t.named""",
}

TEXTS: Mapping[str, str] = {
    "pg_description": """
SELECT d.classoid, d.objoid, d.objsubid,
       format('COMMENT ON %s %s IS %L', CASE i.type WHEN 'table column' THEN 'column' WHEN 'table constraint' THEN
              'constraint' WHEN 'statistics object' THEN 'statistics' ELSE i.type END, i.identity, d.description)
FROM t CROSS JOIN pg_description d CROSS JOIN LATERAL pg_identify_object(d.classoid, d.objoid, d.objsubid) i
WHERE (d.classoid, d.objoid) IN (SELECT class, object FROM objects)
   OR d.classoid = 'pg_class'::regclass AND d.objoid = t.oid AND d.objsubid > 0""",
    "pg_seclabel": """
SELECT s.classoid, s.objoid, s.objsubid, format('SECURITY LABEL FOR %I ON %s %s IS %L', s.provider,
       CASE s.objsubid WHEN 0 THEN 'TABLE' ELSE 'COLUMN' END, i.identity, s.label)
FROM t JOIN pg_seclabel s ON s.classoid = 'pg_class'::regclass AND s.objoid = t.oid
CROSS JOIN LATERAL pg_identify_object(s.classoid, s.objoid, s.objsubid) i""",
}
"""The comment of the table itself contains the identity of the copy."""

GRANTEE = "CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END"
GRANT = f"{GRANTEE}, CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END"
OF_LOGIN = "g.grantee <> t.relowner AND pg_get_userbyid(g.grantee) = current_user"
OF_OTHERS = "g.grantee <> t.relowner AND pg_get_userbyid(g.grantee) <> current_user"
ON_COLUMN = f"""
SELECT a.attnum, format('GRANT %s (%I) ON TABLE %s TO %s%s', g.privilege_type, a.attname, t.named, {GRANT})
FROM t JOIN pg_attribute a ON a.attrelid = t.oid CROSS JOIN aclexplode(a.attacl) g"""
ON_TABLE = f"""
SELECT 0, format('GRANT %s ON TABLE %s TO %s%s', g.privilege_type, t.named, {GRANT})
FROM t CROSS JOIN aclexplode(t.relacl) g"""

COLUMN_PROPERTIES: Mapping[str, str] = {
    "attacl": f"{ON_COLUMN} WHERE {OF_OTHERS}",
    "attoptions": """
SELECT a.attnum,
       format('ALTER TABLE %s ALTER COLUMN %I SET (%s)', t.named, a.attname, array_to_string(a.attoptions, ', '))
FROM t JOIN pg_attribute a ON a.attrelid = t.oid WHERE a.attoptions IS NOT NULL""",
    "attstattarget": """
SELECT a.attnum, format('ALTER TABLE %s ALTER COLUMN %I SET STATISTICS %s', t.named, a.attname, a.attstattarget)
FROM t JOIN pg_attribute a ON a.attrelid = t.oid WHERE a.attnum > 0 AND a.attstattarget >= 0""",
    "attstorage": """
SELECT a.attnum, format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE %s', t.named, a.attname,
       CASE a.attstorage WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END)
FROM t JOIN pg_attribute a ON a.attrelid = t.oid JOIN pg_type y ON y.oid = a.atttypid
WHERE a.attnum > 0 AND a.attstorage <> y.typstorage""",
    "attcompression": """
SELECT a.attnum, format('ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION %s', t.named, a.attname,
       CASE a.attcompression WHEN 'l' THEN 'lz4' ELSE 'pglz' END)
FROM t JOIN pg_attribute a ON a.attrelid = t.oid WHERE a.attnum > 0 AND a.attcompression <> ''""",
}

TABLE_PROPERTIES: Mapping[str, str] = {
    "relacl": f"{ON_TABLE} WHERE {OF_OTHERS}",
    "reloptions": """
SELECT 0, format('ALTER TABLE %s SET (%s)', t.named, string_agg(format('%s%s = %L', o.prefix,
       split_part(o.option, '=', 1), substr(o.option, strpos(o.option, '=') + 1)), ', ' ORDER BY o.prefix, o.option))
FROM t CROSS JOIN LATERAL (
  SELECT '' AS prefix, unnest(t.reloptions) AS option UNION ALL
  SELECT 'toast.', unnest(x.reloptions) FROM pg_class x WHERE x.oid = t.reltoastrelid) o
GROUP BY t.named""",
    "reltablespace": """
SELECT 0, format('ALTER TABLE %s SET TABLESPACE %I', t.named, s.spcname)
FROM t JOIN pg_tablespace s ON s.oid = t.reltablespace""",
    "relreplident": """
SELECT 0, format('ALTER TABLE %s REPLICA IDENTITY %s', t.named, CASE t.relreplident WHEN 'f' THEN 'FULL'
       WHEN 'n' THEN 'NOTHING' ELSE format('USING INDEX %I', x.relname) END)
FROM t LEFT JOIN pg_index i ON i.indrelid = t.oid AND i.indisreplident LEFT JOIN pg_class x ON x.oid = i.indexrelid
WHERE t.relreplident IN ('f', 'n') OR x.relname IS NOT NULL AND NOT i.indisprimary""",
    "relrowsecurity": """
SELECT 0, format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', t.named) FROM t WHERE t.relrowsecurity""",
    "relforcerowsecurity": """
SELECT 0, format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', t.named) FROM t WHERE t.relforcerowsecurity""",
    "relowner": f"""
SELECT 0, format('ALTER TABLE %s OWNER TO %I', t.named, pg_get_userbyid(t.relowner))
FROM t WHERE pg_get_userbyid(t.relowner) <> current_user
UNION ALL {ON_TABLE} WHERE {OF_LOGIN} UNION ALL {ON_COLUMN} WHERE {OF_LOGIN}""",
}
"""The owner comes last: as another owner's, the table can be beyond our reach. With the owner, the privileges of the
login on what was its own change their meaning, so they come after it."""

INDEX_PROPERTIES: Mapping[str, str] = {
    "indisclustered": """
SELECT 'pg_class'::regclass::oid, i.indexrelid, 0, format('ALTER TABLE %s CLUSTER ON %I', t.named, x.relname)
FROM t JOIN pg_index i ON i.indrelid = t.oid JOIN pg_class x ON x.oid = i.indexrelid
WHERE i.indisclustered AND NOT i.indisprimary AND x.relname <> t.own_index"""
}
