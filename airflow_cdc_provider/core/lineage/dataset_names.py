"""Names of source and target tables, as OpenLineage specifies them for each system. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.spec.definition import Source, Target
from airflow_cdc_provider.core.table.source_names import parts_of, table_name

PARTS_OF_NAME = 3
"""Database, schema, table: a shorter name lacks the database."""


@dataclass(frozen=True)
class DatasetName:
    """The same in the events of all systems that read or write the table."""

    namespace: str
    name: str


@dataclass(frozen=True)
class Server:
    """``scheme`` of the namespace, ``port`` by default."""

    scheme: str
    port: int
    has_schemas: bool = True


SERVERS = {
    "postgres": Server("postgres", 5432),
    "mysql": Server("mysql", 3306, has_schemas=False),
    "sqlserver": Server("mssql", 1433),
}
LAKES = frozenset({"delta", "iceberg"})
REDSHIFT = Server("redshift", 5439)
REDSHIFT_HOST = re.compile(r"([\w-]+)\.[\w-]+\.([\w-]+)\.redshift(?:-serverless)?\.amazonaws\.com")


def source_dataset(source: Source, connection: ConnectionInfo, table: str) -> DatasetName:
    """``table``: its name in the change log. Messages and polled systems name neither server nor database: their
    namespace is the connection."""
    if server := SERVERS.get(source.type):
        return _on_server(server, connection, table)
    host = re.sub(r"^\w+://", "", connection.host).rstrip("/") or source.connection
    return DatasetName(f"{source.type}://{host}" if host else source.type, table)


def target_dataset(target: Target, connection: ConnectionInfo, table: str) -> DatasetName:
    """``table``: its name in the target."""
    options = target.options
    if target.type in LAKES:
        return _in_folder(target, table)
    if server := SERVERS.get(target.type):
        return _on_server(server, connection, f"{options['schema']}.{table}")
    match target.type:
        case "redshift":
            found = REDSHIFT_HOST.fullmatch(connection.host)
            host = f"{found[1]}.{found[2]}" if found else connection.host
            return _on_server(REDSHIFT, replace(connection, host=host), f"{options['schema']}.{table}")
        case "bigquery":
            project = options.get("project") or connection.extra.get("project") or connection.connection_id
            return DatasetName("bigquery", f"{project}.{options['dataset']}.{table}")
        case "snowflake":
            account = connection.extra.get("account") or connection.host
            name = table if options.get("identifiers") == "exact" else table.upper()
            return DatasetName(f"snowflake://{account}", f"{options['database']}.{options['schema']}.{name}")
        case "spanner":
            project = options.get("project") or connection.extra.get("project") or connection.connection_id
            return DatasetName(f"spanner://{project}:{options['instance']}", f"{options['database']}.{table}")
    return DatasetName(f"{target.type}://{connection.host or target.connection}", table)


def _on_server(server: Server, connection: ConnectionInfo, table: str) -> DatasetName:
    parts = parts_of(table)
    lacks_database = server.has_schemas and len(parts) < PARTS_OF_NAME
    name = table_name(connection.schema, *parts) if lacks_database and connection.schema else table
    return DatasetName(f"{server.scheme}://{connection.host}:{connection.port or server.port}", name)


def _in_folder(target: Target, table: str) -> DatasetName:
    if not target.location:
        return DatasetName(target.catalog, table)
    found = urlsplit(f"{target.location.rstrip('/')}/{table}")
    path = found.path.lstrip("/") if found.scheme else found.path
    return DatasetName(f"{found.scheme}://{found.netloc}" if found.scheme else "file", path)
