"""What a session inherits from its role, its server or its account."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SETTINGS = "airflow_cdc_provider/core/connections"
POSTGRES = ("tests/connectors/test_postgres_settings.py",)
MYSQL = ("tests/connectors/test_mysql_settings.py",)

SESSIONS = (
    Mutant(
        "a session with PostgreSQL inherits the time limit of a transaction",
        f"{SETTINGS}/postgres_settings.py",
        '    "transaction_timeout": "0",\n',
        "",
        POSTGRES,
    ),
    Mutant(
        "a session with PostgreSQL does not get the warning about skipped changes",
        f"{SETTINGS}/postgres_settings.py",
        '"client_min_messages": "notice"',
        '"client_min_messages": "error"',
        POSTGRES,
    ),
    Mutant(
        "the functions that fix settings are looked up in the role's search_path",
        f"{SETTINGS}/postgres_settings.py",
        "SELECT pg_catalog.set_config(",
        "SELECT set_config(",
        POSTGRES,
    ),
    Mutant(
        "a target's own settings replace the fixed ones",
        "airflow_cdc_provider/targets/postgres/server.py",
        'OWN_SETTINGS = {**SETTINGS, "lock_timeout"',
        'OWN_SETTINGS = {"lock_timeout"',
        POSTGRES,
    ),
    Mutant(
        "a poll inherits the settings of its role",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/settings.py",
        "for statement in SETTINGS.get(system, ()):",
        "for statement in ():",
        POSTGRES,
    ),
    Mutant(
        "a poll has no default schema",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/settings.py",
        "record.info[DEFAULT_SCHEMA] = cursor.fetchone()[0]",
        "cursor.fetchone()",
        POSTGRES,
    ),
    Mutant(
        "a poll keeps the collation that SQLAlchemy has set",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/settings.py",
        '    sa.event.listen(engine, "connect", fix)\n',
        "",
        MYSQL,
    ),
    Mutant(
        "the server limits the rows of a SELECT",
        f"{SETTINGS}/mysql_settings.py",
        '    "sql_select_limit": "18446744073709551615",\n',
        "",
        MYSQL,
    ),
    Mutant(
        "settings of MariaDB alone are not set",
        f"{SETTINGS}/mysql_settings.py",
        '    "idle_transaction_timeout /*M!*/": "0",\n',
        '    "idle_transaction_timeout /*!50708*/": "0",\n',
        MYSQL,
    ),
    Mutant(
        "a session with Snowflake gets as many rows as its account allows",
        "airflow_cdc_provider/targets/snowflake/session.py",
        '    "ROWS_PER_RESULTSET": 0,\n',
        "",
        ("tests/spark/test_warehouse_settings.py",),
    ),
)

ERRORS = ("tests/connectors/test_server_errors.py",)

SERVER_ERRORS = (
    Mutant(
        "what the client library refuses is a lost connection",
        f"{SETTINGS}/postgres_errors.py",
        "return UNKNOWN if of_client else CONNECTION_LOST",
        "return CONNECTION_LOST",
        ERRORS,
    ),
    Mutant(
        "a lost connection is an unknown error",
        f"{SETTINGS}/postgres_session.py",
        "return not error.sqlstate and not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)",
        "return not error.sqlstate",
        ERRORS,
    ),
    Mutant(
        "a byte that is no text is retried for ever",
        f"{SETTINGS}/postgres_errors.py",
        '    **permanent("22", VALUE),\n    **permanent("22021 22P05", TEXTS),\n',
        "",
        ERRORS,
    ),
    Mutant(
        "an error of a trigger of the target is tried again for ever",
        f"{SETTINGS}/postgres_errors.py",
        '    **permanent("09 20 21 24 27 2F 38 39 P0", ATTACHED),\n',
        "",
        ERRORS,
    ),
    Mutant(
        "what the storage engine says about a table is not read",
        f"{SETTINGS}/mysql_errors.py",
        "    if str(code) == CREATE_FAILED and",
        "    if not code and",
        ERRORS,
    ),
    Mutant(
        "an unknown error of a source is one to try again",
        f"{SETTINGS}/error_classes.py",
        "UNKNOWN = Meaning(\n    ErrorClass.UNKNOWN,",
        "UNKNOWN = Meaning(\n    ErrorClass.RETRY,",
        ERRORS,
    ),
    Mutant(
        "the check opens no session as the stream needs it",
        "airflow_cdc_provider/connectors/sources/postgres/check.py",
        '        with client.session("check", replication=True):',
        '        with client.session("check"):',
        ERRORS,
    ),
    Mutant(
        "the reason of a failed bulk query is not read",
        "airflow_cdc_provider/connectors/sources/salesforce/bulk.py",
        "    if known and not known[0].error.retryable:",
        "    if not known:",
        ("tests/connectors/test_salesforce_bulk.py",),
    ),
    Mutant(
        "a wide table is not tried in the check",
        "airflow_cdc_provider/targets/database/check.py",
        "    if len(task.schema.columns) > MANY_COLUMNS and not any(target.limits(task)):",
        "    if False:",
        ("tests/spark/test_database_check.py",),
    ),
    Mutant(
        "a transaction of the state store inherits settings",
        "airflow_cdc_provider/state/engine.py",
        '        sa.event.listen(engine, "begin", _begin_postgresql)\n',
        "",
        ("tests/provider/test_state_sessions.py",),
    ),
    Mutant(
        "settings of the state store outlive their transaction",
        "airflow_cdc_provider/state/engine.py",
        "settings_statement(SETTINGS, of_transaction=True)",
        "settings_statement(SETTINGS)",
        ("tests/provider/test_state_sessions.py",),
    ),
    Mutant(
        "a session of the state store is read-only if its role says so",
        "airflow_cdc_provider/state/engine.py",
        "    connection.read_only = False\n",
        "",
        ("tests/provider/test_state_sessions.py",),
    ),
    Mutant(
        "the state store prepares statements",
        "airflow_cdc_provider/state/engine.py",
        '{"prepare_threshold": None}',
        "{}",
        ("tests/provider/test_state_sessions.py",),
    ),
    Mutant(
        "a deadlock in the state store is not repeated",
        "airflow_cdc_provider/state/database.py",
        'frozenset({"40001", "40P01"})',
        'frozenset({"40001"})',
        ("tests/provider/test_state_sessions.py",),
    ),
)
