"""The system views and tables that Microsoft documents, as tables of SQLite, in one file per schema."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

SCHEMAS = ("sys", "cdc", "msdb", "dbo", "stock", "dbo.b")
VIEWS = {
    "sys.databases": "database_id, name, collation_name, is_cdc_enabled, snapshot_isolation_state",
    "sys.database_recovery_status": "database_id, database_guid, recovery_fork_guid",
    "sys.schemas": "schema_id, name",
    "sys.tables": "object_id, name, schema_id, create_date, max_column_id_used, is_ms_shipped, is_tracked_by_cdc",
    "sys.columns": "object_id, name, column_id, system_type_id, user_type_id, max_length, precision, scale, "
    "collation_name, is_nullable, is_identity, is_computed, default_object_id, is_column_set, encryption_type",
    "sys.types": "name, system_type_id, user_type_id",
    "sys.indexes": "object_id, name, index_id, type, is_unique, is_primary_key, has_filter, is_disabled, "
    "is_hypothetical",
    "sys.index_columns": "object_id, index_id, index_column_id, column_id, key_ordinal",
    "sys.partitions": "partition_id, object_id, index_id, partition_number, rows",
    "sys.dm_db_partition_stats": "partition_id, object_id, index_id, partition_number, reserved_page_count, row_count",
    "msdb.cdc_jobs": "database_id, job_type, retention",
}
CDC_TABLES = {
    "cdc.change_tables": "object_id, version, source_object_id, capture_instance, start_lsn, end_lsn, "
    "supports_net_changes, has_drop_pending, role_name, index_name, filegroup_name, create_date, partition_switch",
    "cdc.captured_columns": "object_id, column_name, column_id, column_type, column_ordinal, is_computed",
    "cdc.lsn_time_mapping": "start_lsn, tran_begin_time, tran_end_time, tran_id",
    "cdc.ddl_history": "source_object_id, object_id, required_column_update, ddl_command, ddl_lsn, ddl_time",
}
TYPES = {
    "image": 34, "text": 35, "uniqueidentifier": 36, "date": 40, "time": 41, "datetime2": 42, "datetimeoffset": 43,
    "tinyint": 48, "smallint": 52, "int": 56, "smalldatetime": 58, "real": 59, "money": 60, "datetime": 61,
    "float": 62, "sql_variant": 98, "ntext": 99, "bit": 104, "decimal": 106, "numeric": 108, "smallmoney": 122,
    "bigint": 127, "varbinary": 165, "varchar": 167, "binary": 173, "char": 175, "timestamp": 189, "nvarchar": 231,
    "nchar": 239, "xml": 241,
}  # fmt: skip
CLR_TYPES = {"hierarchyid": 128, "geometry": 129, "geography": 130}
CLR = 240


def connect(folder: Path, schemas: Sequence[str] = SCHEMAS) -> sqlite3.Connection:
    """Each schema is in a file of its own. A reader sees the state in which its statement began."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for name in schemas:
        connection.execute(f"ATTACH '{folder / name}.sqlite' AS \"{name}\"")
    connection.execute("PRAGMA busy_timeout = 10000")
    return connection


def connect_writer(folder: Path) -> sqlite3.Connection:
    connection = connect(folder)
    for name in SCHEMAS:
        connection.execute(f'PRAGMA "{name}".journal_mode = WAL')
        connection.execute(f'PRAGMA "{name}".synchronous = OFF')
    return connection


def create(connection: sqlite3.Connection, tables: dict[str, str]) -> None:
    for name, columns in tables.items():
        listed = ", ".join(f"[{column.strip()}]" for column in columns.split(","))
        connection.execute(f"CREATE TABLE {name} ({listed})")


def add_types(connection: sqlite3.Connection) -> None:
    rows = [(name, number, number) for name, number in TYPES.items()]
    rows += [(name, CLR, number) for name, number in CLR_TYPES.items()]
    rows += [("sysname", 231, 256)]
    connection.executemany("INSERT INTO sys.types VALUES (?, ?, ?)", rows)
