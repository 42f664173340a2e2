"""A session with a warehouse inherits no setting of its account or user that shapes, limits or cuts a statement."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.sandbox.redshift import USER, EmbeddedRedshift
from airflow_cdc_provider.sandbox.snowflake import EmbeddedSnowflake
from airflow_cdc_provider.targets.redshift import session as redshift
from airflow_cdc_provider.targets.snowflake import session as snowflake
from airflow_cdc_provider.targets.snowflake.options import SnowflakeOptions
from airflow_cdc_provider.targets.snowflake.server import SnowflakeServer

pytestmark = pytest.mark.server

OF_SNOWFLAKE: dict[str, str] = {
    "what is logged, measured and shown of a query": """
        ACTIVE_PYTHON_PROFILER ENABLE_CONSOLE_OUTPUT LOG_LEVEL METRIC_LEVEL PYTHON_PROFILER_MODULES
        PYTHON_PROFILER_TARGET_STAGE QUERY_TAG TRACE_LEVEL""",
    "memory, threads and files of a client": """
        CLIENT_MEMORY_LIMIT CLIENT_PREFETCH_THREADS CLIENT_RESULT_CHUNK_SIZE CLIENT_SESSION_KEEP_ALIVE
        CLIENT_SESSION_KEEP_ALIVE_HEARTBEAT_FREQUENCY S3_STAGE_VPCE_DNS_NAME""",
    "of other clients": """
        CLIENT_METADATA_REQUEST_USE_CONNECTION_CTX CLIENT_METADATA_USE_SESSION_DATABASE CSV_TIMESTAMP_FORMAT
        JDBC_TREAT_DECIMAL_AS_INT JDBC_TREAT_TIMESTAMP_NTZ_AS_UTC JDBC_USE_SESSION_TIMEZONE JS_TREAT_INTEGER_AS_BIGINT
        ODBC_TREAT_DECIMAL_AS_INT""",
    "of types and statements that we do not use": """
        ENABLE_GET_DDL_USE_DATA_TYPE_ALIAS ENABLE_UNLOAD_PHYSICAL_TYPE_OPTIMIZATION GEOGRAPHY_OUTPUT_FORMAT
        GEOMETRY_OUTPUT_FORMAT NOORDER_SEQUENCE_AS_DEFAULT SIMULATED_DATA_SHARING_CONSUMER""",
    "a cached result is that of the same rows": "USE_CACHED_RESULT",
}
"""Session parameters of Snowflake's reference that may be inherited, by reason."""

FIXED = """
ABORT_DETACHED_QUERY AUTOCOMMIT BINARY_INPUT_FORMAT BINARY_OUTPUT_FORMAT CLIENT_RESULT_COLUMN_CASE_INSENSITIVE
CLIENT_TIMESTAMP_TYPE_MAPPING DATE_INPUT_FORMAT DATE_OUTPUT_FORMAT DEFAULT_NULL_ORDERING ERROR_ON_NONDETERMINISTIC_MERGE
ERROR_ON_NONDETERMINISTIC_UPDATE HYBRID_TABLE_LOCK_TIMEOUT JSON_INDENT LOCK_TIMEOUT MULTI_STATEMENT_COUNT
QUOTED_IDENTIFIERS_IGNORE_CASE ROWS_PER_RESULTSET SEARCH_PATH STATEMENT_QUEUED_TIMEOUT_IN_SECONDS
STATEMENT_TIMEOUT_IN_SECONDS STRICT_JSON_OUTPUT TIMESTAMP_DAY_IS_ALWAYS_24H TIMESTAMP_INPUT_FORMAT
TIMESTAMP_LTZ_OUTPUT_FORMAT TIMESTAMP_NTZ_OUTPUT_FORMAT TIMESTAMP_OUTPUT_FORMAT TIMESTAMP_TYPE_MAPPING
TIMESTAMP_TZ_OUTPUT_FORMAT TIMEZONE TIME_INPUT_FORMAT TIME_OUTPUT_FORMAT TRANSACTION_ABORT_ON_ERROR
TRANSACTION_DEFAULT_ISOLATION_LEVEL TWO_DIGIT_CENTURY_START UNSUPPORTED_DDL_ACTION WEEK_OF_YEAR_POLICY WEEK_START
"""


def test_every_session_parameter_of_snowflake_is_fixed_or_may_be_inherited_for_a_reason() -> None:
    inherited = {name for names in OF_SNOWFLAKE.values() for name in names.split()}
    assert set(FIXED.split()) <= snowflake.SETTINGS.keys()
    assert not inherited & snowflake.SETTINGS.keys()


def test_a_session_with_snowflake_sends_its_parameters(snowflake_server: EmbeddedSnowflake) -> None:
    options = SnowflakeOptions(database="FAKESNOW", schema="PUBLIC")
    server = SnowflakeServer(snowflake_server.connection, options, "r", ConnectionInfo())
    with server.session("read") as connection:
        cursor = connection.cursor()
        for name in ("ROWS_PER_RESULTSET", "QUOTED_IDENTIFIERS_IGNORE_CASE", "TRANSACTION_ABORT_ON_ERROR"):
            cursor.execute(f"SHOW PARAMETERS LIKE '{name}' IN SESSION")
            ((key, value, *_),) = cursor.fetchall()
            assert (key, str(value).lower()) == (name, str(snowflake.SETTINGS[name]).lower())


def test_a_session_with_redshift_inherits_no_setting_of_its_user(redshift_server: EmbeddedRedshift) -> None:
    hostile = {"statement_timeout": "60000", "timezone": "'Asia/Tokyo'", "search_path": "public", "datestyle": "SQL"}
    info: ConnectionInfo = redshift_server.connection
    with psycopg.connect(redshift_server.postgres.dsn(), autocommit=True) as own:
        for name, value in hostile.items():
            own.execute(f"ALTER ROLE {USER} SET {name} = {value}".encode())
        try:
            with redshift.open_session(replace(info), "test", "test") as connection:
                cursor = connection.cursor()
                for name in hostile:
                    cursor.execute(f"SELECT current_setting('{name}')")
                    assert cursor.fetchone()[0] == redshift.SETTINGS[name]
        finally:
            own.execute(f"ALTER ROLE {USER} RESET ALL".encode())
