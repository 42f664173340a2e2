"""A stand-in for Redshift on loopback: PostgreSQL behind a proxy that has Redshift's statements, types and errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import psycopg

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.ports import free_ports, is_open
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from airflow_cdc_provider.sandbox.server import HOST, EmbeddedServer

USER = "cdc"
SETTINGS = {
    "default_transaction_isolation": "serializable",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "allow_system_table_mods": "on",
    "max_connections": "200",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
"""At a higher ``wal_level`` LOCK gives its transaction a number before its snapshot, and PostgreSQL does not find the
conflicts of such a transaction."""

FUNCTIONS = """
CREATE FUNCTION pg_catalog.db_collation() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'case_sensitive' $$;
CREATE FUNCTION pg_catalog.to_hex(bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT encode($1, 'hex') $$;
CREATE FUNCTION pg_catalog.from_hex(text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT decode($1, 'hex') $$;
CREATE FUNCTION pg_catalog.json_parse(text) RETURNS jsonb LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1::jsonb $$;
CREATE FUNCTION pg_catalog.text_of_json(jsonb) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1::text $$;
CREATE VIEW pg_catalog.svv_relation_privileges AS
SELECT n.nspname AS namespace_name, c.relname AS relation_name, a.privilege_type,
       CASE WHEN a.grantee = 0 THEN 'public' WHEN r.rolcanlogin THEN 'user' ELSE 'group' END AS identity_type,
       coalesce(r.rolname::text, 'public') AS identity_name, a.is_grantable AS admin_option
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN aclexplode(c.relacl) a
LEFT JOIN pg_roles r ON r.oid = a.grantee
WHERE a.grantee <> c.relowner;
GRANT SELECT ON pg_catalog.svv_relation_privileges TO PUBLIC;
"""
"""What PostgreSQL lacks. It cannot be created in a transaction of another user."""


class EmbeddedRedshift(EmbeddedServer):
    """A database whose S3 is the store of this connection of type ``aws``. ``postgres`` is behind it: with its own
    client, tables are read as they are."""

    name = "Redshift"
    user = USER

    def __init__(self, store: ConnectionInfo) -> None:
        super().__init__()
        self.postgres = EmbeddedPostgres(SETTINGS)
        (self.port,) = free_ports(1)
        self.password = self.postgres.password
        access = {"endpoint": store.extra["endpoint_url"], "key": store.login, "secret": store.password}
        self._store = self._private("store.json", json.dumps(access))

    @property
    def connection(self) -> ConnectionInfo:
        """Its server has no TLS."""
        return ConnectionInfo(
            "warehouse", HOST, self.port, USER, self.password, schema="postgres", extra={"ssl": False}
        )

    def start(self) -> None:
        self.postgres.start()
        self._set_up()
        super().start()

    def stop(self) -> None:
        super().stop()
        self.postgres.stop()

    def delete(self) -> None:
        super().delete()
        self.postgres.delete()

    def _set_up(self) -> None:
        """Once: the functions, and a user who is no superuser."""
        with psycopg.connect(self.postgres.dsn(), autocommit=True) as connection:
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", [USER]).fetchone():
                return
            connection.execute(FUNCTIONS.encode())
            connection.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{self.password}'".encode())

    def _command(self) -> list[str]:
        standin = Path(__file__).parent / "standins" / "redshift.py"
        return [sys.executable, "-P", str(standin), str(self.port), str(self.postgres.port), str(self._store)]

    def _is_ready(self) -> bool:
        return is_open(self.port)
