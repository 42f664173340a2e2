"""What a table of a database has beside its rows, when a new copy replaces it."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

POSTGRES = "airflow_cdc_provider/targets/postgres"
KINDS = f"{POSTGRES}/catalog_kinds.py"
TESTS = ("tests/connectors/test_postgres_replaced_tables.py",)
MYSQL_TESTS = ("tests/connectors/test_mysql_replaced_tables.py",)

REPLACED_TABLES = (
    Mutant(
        "a new copy of PostgreSQL lacks the policies",
        KINDS,
        "FROM t JOIN pg_policy p ON p.polrelid = t.oid",
        "FROM t JOIN pg_policy p ON p.polrelid = t.oid AND NOT p.polpermissive",
        TESTS,
    ),
    Mutant(
        "a new copy of PostgreSQL does not enable row-level security",
        KINDS,
        "FROM t WHERE t.relrowsecurity",
        "FROM t WHERE false",
        TESTS,
    ),
    Mutant(
        "a new copy of PostgreSQL keeps default privileges",
        f"{POSTGRES}/attachments.py",
        "        cursor.execute(revoke)\n",
        "        pass\n",
        TESTS,
    ),
    Mutant(
        "a property that a new copy of PostgreSQL cannot have ends with its column",
        f"{POSTGRES}/attachments.py",
        "f.object, 'pg_class'::regclass, t.oid, a.attnum, 'a')",
        "f.object, 'pg_class'::regclass, t.oid, a.attnum, d.deptype)",
        TESTS,
    ),
    Mutant(
        "what uses the type of the rows does not depend on the table",
        f"{POSTGRES}/attachments.py",
        "('pg_type'::regclass, y.oid), ('pg_type'::regclass, y.typarray))\nLEFT",
        "('pg_type'::regclass, y.typarray))\nLEFT",
        TESTS,
    ),
    Mutant(
        "rows of PostgreSQL are shown while they are loaded",
        "airflow_cdc_provider/targets/database/staging.py",
        "if isinstance(sql, HidesRows) else []",
        "if isinstance(sql, HidesRows) and not name else []",
        TESTS,
    ),
    Mutant(
        "a first copy of PostgreSQL stays hidden",
        f"{POSTGRES}/server.py",
        '        cursor.execute(f"ALTER TABLE {full} DISABLE ROW LEVEL SECURITY")\n',
        "",
        TESTS,
    ),
    Mutant(
        "a copy is loaded before the database says that it cannot replace the table",
        "spark_jobs/writers/database.py",
        "        if current.exists and not current.shared:\n",
        "        if current.exists and current.shared:\n",
        ("tests/spark/test_database_commits.py",),
    ),
    Mutant(
        "a new copy of MySQL loses the triggers",
        "airflow_cdc_provider/targets/mysql/server.py",
        "        if exists:\n            self.require_replaceable(cursor, table)\n",
        "",
        MYSQL_TESTS,
    ),
)
