"""The queries that are sent to the server, as T-SQL. Pure.

Values are literals, not parameters: LSNs, numbers, and texts that the server or the definition contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_cdc_provider.connectors.sources.sqlserver.positions import lsn_text
from airflow_cdc_provider.connectors.sources.sqlserver.types import SqlColumn, quoted, text_literal

DATABASE = """
SELECT d.name, d.collation_name, d.is_cdc_enabled, d.snapshot_isolation_state,
       CONVERT(int, SERVERPROPERTY('ProductMajorVersion')), CONVERT(int, SERVERPROPERTY('EngineEdition')),
       CONVERT(nvarchar(128), CURRENT_USER), DATEPART(TZOFFSET, SYSDATETIMEOFFSET())
FROM sys.databases d WHERE d.database_id = DB_ID()
"""

IDENTITY = """
SELECT DB_NAME(), CONVERT(char(36), r.database_guid), CONVERT(char(36), r.recovery_fork_guid)
FROM sys.database_recovery_status r WHERE r.database_id = DB_ID()
"""

# The types of the CLR share one system type.
COLUMNS = """
SELECT s.name, t.name, t.object_id, CONVERT(varchar(23), t.create_date, 121), t.max_column_id_used,
       c.column_id, c.name, y.name, c.max_length, c.precision, c.scale, c.is_nullable,
       COALESCE(c.collation_name, N''), c.is_computed,
       CASE WHEN c.default_object_id <> 0 OR c.is_nullable = 0 OR c.is_identity = 1 THEN 1 ELSE 0 END,
       CASE WHEN c.is_column_set = 1 OR c.encryption_type IS NOT NULL THEN 1 ELSE 0 END
FROM sys.tables t
JOIN sys.schemas s ON s.schema_id = t.schema_id
JOIN sys.columns c ON c.object_id = t.object_id
JOIN sys.types y ON y.user_type_id = CASE WHEN c.system_type_id = 240 THEN c.user_type_id ELSE c.system_type_id END
WHERE {where}
ORDER BY s.name, t.name, c.column_id
"""

# Those that the server enforces for all rows. The primary key comes first, then unique indexes by number.
KEYS = """
SELECT i.object_id, i.index_id, i.type, c.name
FROM sys.indexes i
JOIN sys.index_columns k ON k.object_id = i.object_id AND k.index_id = i.index_id
JOIN sys.columns c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0 AND i.is_hypothetical = 0 AND k.key_ordinal > 0
ORDER BY i.object_id, i.is_primary_key DESC, i.index_id, k.key_ordinal
"""

# The documentation calls object_id the id of the source table; it is the id of the change table.
CAPTURED_COLUMNS = "SELECT k.object_id, k.column_name, k.column_id, k.column_ordinal FROM cdc.captured_columns k"

CHANGE_TABLES = """
SELECT t.source_object_id, t.object_id, t.capture_instance, t.start_lsn, CONVERT(varchar(23), t.create_date, 121),
       t.partition_switch
FROM cdc.change_tables t
"""

STARTS = "SELECT t.object_id, t.start_lsn FROM cdc.change_tables t"

PARTITIONED = """
SELECT DISTINCT p.object_id FROM sys.partitions p WHERE p.partition_number > 1 AND p.index_id IN (0, 1)
"""

ROW_COUNT = "SELECT COALESCE(SUM(p.rows), 0) FROM sys.partitions p WHERE p.object_id = {id} AND p.index_id IN (0, 1)"

# A page has 8 KiB. Indexes 0 and 1 are the rows themselves.
SIZES = """
SELECT p.object_id, SUM(p.row_count), SUM(p.reserved_page_count) * 8192
FROM sys.dm_db_partition_stats p WHERE p.index_id IN (0, 1) GROUP BY p.object_id
"""

DDL = "SELECT h.source_object_id, h.ddl_lsn, h.ddl_command FROM cdc.ddl_history h WHERE h.source_object_id IN ({ids})"

COMMIT = "SELECT TOP ({n}) m.start_lsn, CONVERT(varchar(23), m.tran_end_time, 121) FROM cdc.lsn_time_mapping m"
LAST_COMMIT = COMMIT.format(n=1) + " ORDER BY m.start_lsn DESC"
FIRST_COMMIT = COMMIT.format(n=1) + " ORDER BY m.start_lsn"

CODE_PAGES = """
SELECT x.name, CONVERT(int, COLLATIONPROPERTY(x.name, 'CodePage')) FROM (
    SELECT DISTINCT c.collation_name AS name FROM sys.columns c WHERE c.collation_name IS NOT NULL
    UNION SELECT d.collation_name FROM sys.databases d WHERE d.database_id = DB_ID()
) x
"""

NOW = "SELECT CONVERT(varchar(23), GETDATE(), 121)"
AGE = "SELECT DATEDIFF(second, CONVERT(datetime, {time}, 121), GETDATE())"

CAPTURE_JOB = "SELECT j.retention FROM msdb.dbo.cdc_jobs j WHERE j.database_id = DB_ID() AND j.job_type = N'cleanup'"


def lsn_literal(lsn: int) -> str:
    return f"0x{lsn_text(lsn).upper()}"


def tables(schemas: Sequence[str]) -> str:
    where = "t.is_ms_shipped = 0"
    if schemas:
        where += f" AND s.name IN ({', '.join(map(text_literal, schemas))})"
    return COLUMNS.format(where=where)


def change_table_columns() -> str:
    return COLUMNS.format(where="s.name = N'cdc' AND t.is_ms_shipped = 1")


def commit_at(lsn: int) -> str:
    return f"{COMMIT.format(n=1)} WHERE m.start_lsn = {lsn_literal(lsn)}"


def commits(after: int, upto: int, count: int) -> str:
    """The first ``count`` commits in ``(after, upto]``."""
    within = f"m.start_lsn > {lsn_literal(after)} AND m.start_lsn <= {lsn_literal(upto)}"
    return f"{COMMIT.format(n=count)} WHERE {within} ORDER BY m.start_lsn"


def committed_later(lsn: int, time: str) -> str:
    """A row if a transaction was captured that committed after both."""
    later = f"m.start_lsn > {lsn_literal(lsn)} AND m.tran_end_time > CONVERT(datetime, {text_literal(time)}, 121)"
    return f"SELECT TOP (1) 1 FROM cdc.lsn_time_mapping m WHERE {later}"


def age(time: str) -> str:
    """Seconds since a time of the server."""
    return AGE.format(time=text_literal(time))


def ddl(ids: Iterable[int]) -> str:
    return DDL.format(ids=", ".join(map(str, ids)))


def changes(change_table: str, columns: Sequence[SqlColumn], after: int, upto: int) -> str:
    """The rows of a change table in ``(after, upto]``. For each large column, a bit follows the cells: whether the
    update changed it."""
    cells = [column.expression for column in columns]
    bits = [f"sys.fn_cdc_is_bit_set({column.ordinal}, [__$update_mask])" for column in columns if column.large]
    listed = ", ".join(["[__$start_lsn]", "[__$command_id]", "[__$seqval]", "[__$operation]", *cells, *bits])
    return (
        f"SELECT {listed} FROM cdc.{quoted(change_table)} WHERE {_within(after, upto)} "
        "ORDER BY [__$start_lsn], [__$command_id], [__$seqval], [__$operation]"
    )


def any_change(change_tables: Sequence[tuple[str, int, int]]) -> str:
    """A row if any of these change tables has a row in its range ``(after, upto]``."""
    return " UNION ALL ".join(
        f"SELECT {number} WHERE EXISTS (SELECT 1 FROM cdc.{quoted(name)} WHERE {_within(after, upto)})"
        for number, (name, after, upto) in enumerate(change_tables)
    )


def rows(table: str, columns: Sequence[SqlColumn], key: str, low: int | None, high: int | None) -> str:
    """The rows of a table whose ``key`` is in ``[low, high)``."""
    bounds = [f"{quoted(key)} >= {low}"] if low is not None else []
    bounds += [f"{quoted(key)} < {high}"] if high is not None else []
    where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
    return f"SELECT {', '.join(column.expression for column in columns)} FROM {table}{where}"


def extremes(table: str, key: str) -> str:
    return f"SELECT MIN({quoted(key)}), MAX({quoted(key)}) FROM {table}"


def no_rows(table: str, columns: Sequence[SqlColumn]) -> str:
    """Fails if the login cannot read one of the columns."""
    return f"SELECT TOP (0) {', '.join(quoted(column.name) for column in columns)} FROM {table}"


def _within(after: int, upto: int) -> str:
    return f"[__$start_lsn] > {lsn_literal(after)} AND [__$start_lsn] <= {lsn_literal(upto)}"
