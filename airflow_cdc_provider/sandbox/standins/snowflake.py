"""fakesnow behind HTTP, corrected where it differs from Snowflake in what a target needs. Runs in an environment of its
own (``sandbox/environments.py`` makes it): ``python -P snowflake.py PORT``.

Corrected: a login creates no database and no schema; DDL commits the transaction, and the end of a session rolls it
back; a comment follows its table to another name, and is dropped with it; SWAP WITH; COPY from named files of an
internal stage, and of an external one from the S3 store of a second argument (a file with its endpoint, key and
secret); NULL in a timestamp with time zone; a dollar sign in a quoted name or a text, and an apostrophe in a name. A
transaction that changes rows locks the table, and reads what is committed before; commands and functions show and abort
transactions; SHOW PARAMETERS has those of the login. Without effect: ALTER SESSION, REMOVE, SHOW GRANTS (no grants).
``/lose/request`` and ``/lose/answer`` lose the next COMMIT, or its answer, also when repeated. ``/deny/WORDS``: the
next statement that begins so lacks a privilege. After ``/idle``, no session has run a statement for an hour.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.fs
import uvicorn
from fakesnow import arrow, copy_into, info_schema
from fakesnow.cursor import FakeSnowflakeCursor
from snowflake.connector.errors import ProgrammingError
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

text_lengths_before = info_schema.insert_text_lengths_sql
server: Any = import_module("fakesnow.server")
"""The package has a function of this name."""

PART = r'"(?:[^"]|"")*"|[A-Za-z_$0-9]+'
NAME = rf"((?:(?:{PART})\.?)+)"
DDL = re.compile(r"\s*(CREATE|ALTER|DROP)\b", re.IGNORECASE)
NO_EFFECT = re.compile(r"\s*(ALTER SESSION|REMOVE)\b", re.IGNORECASE)
GRANTS = re.compile(r"\s*SHOW GRANTS\b", re.IGNORECASE)
RENAME = re.compile(rf"\s*ALTER TABLE {NAME} RENAME TO {NAME}\s*$", re.IGNORECASE)
SWAP = re.compile(rf"\s*ALTER TABLE {NAME} SWAP WITH {NAME}\s*$", re.IGNORECASE)
NO_GRANTS = "SELECT '' AS privilege, '' AS granted_to, '' AS grantee_name, '' AS grant_option WHERE false"
COMMENTS = "_fs_global._fs_information_schema._fs_tables_ext"
KEY = ("ext_table_catalog", "ext_table_schema", "ext_table_name")
SAME = " AND ".join(f"{name} = ?" for name in KEY)

DROP = re.compile(rf"\s*DROP TABLE (?:IF EXISTS )?{NAME}\s*$", re.IGNORECASE)
DONE = "SELECT 'Statement executed successfully.' AS status"

CHANGE = re.compile(rf"\s*(INSERT INTO|UPDATE|DELETE FROM|MERGE INTO|COPY INTO)\s+{NAME}", re.IGNORECASE)
LOCKING = frozenset({"UPDATE", "DELETE FROM", "MERGE INTO"})
END = re.compile(r"\s*(COMMIT|ROLLBACK)\b", re.IGNORECASE)
SHOW = re.compile(r"\s*SHOW (LOCKS|TRANSACTIONS)\s*$", re.IGNORECASE)
CURRENT = re.compile(r"\s*SELECT CURRENT_TRANSACTION\(\)\s*$", re.IGNORECASE)
PARAMETER = re.compile(r"\s*SHOW PARAMETERS LIKE '(\w+)' IN SESSION\s*$", re.IGNORECASE)
ABORT = re.compile(r"\s*SELECT SYSTEM\$ABORT_TRANSACTION\((\d+)\)\s*$", re.IGNORECASE)
HISTORY = re.compile(r"TABLE\(\S+\.QUERY_HISTORY_BY_SESSION\(SESSION_ID => (\d+), RESULT_LIMIT => \d+\)\)")
PARAMETER_COLUMNS = ("key", "value")
LOCK_COLUMNS = ("resource", "type", "transaction", "status")
TRANSACTION_COLUMNS = ("id", "session", "state")
HOUR_S = 3_600

execute_as_before = FakeSnowflakeCursor.execute
urls_as_before = copy_into._source_urls


struct_as_before = arrow.timestamp_to_sf_struct


class Losing:
    """``what``: lost of the next COMMIT. ``session``: whose COMMIT was lost."""

    what = ""
    session: object = None


class Denied:
    """``words``: the beginning of a statement."""

    words = ""


class Session:
    """What the server has of a connection. ``transaction``: 0 if it has changed no row."""

    numbers = itertools.count(1)

    def __init__(self) -> None:
        self.number, self.transaction = next(self.numbers), 0
        self.running, self.ended = False, time.time()
        self.lock_limit_s = 12.0 * HOUR_S
        self.parameters: dict[str, Any] = {}


class Locks:
    """``held``: the connection by table. ``of``: the session of a connection."""

    changed = threading.Condition()
    held: ClassVar[dict[str, Any]] = {}
    of: ClassVar[dict[Any, Session]] = {}

    @classmethod
    def take(cls, connection: Any, table: str) -> None:
        until = time.monotonic() + cls.of[connection].lock_limit_s
        with cls.changed:
            while cls.held.get(table, connection) is not connection:
                if not cls.changed.wait(until - time.monotonic()):
                    raise ProgrammingError(msg="Statement has waited too long for a lock", errno=625, sqlstate="57014")
            cls.held[table] = connection

    @classmethod
    def release(cls, connection: Any) -> None:
        with cls.changed:
            cls.held = {table: owner for table, owner in cls.held.items() if owner is not connection}
            cls.of[connection].transaction = 0
            cls.changed.notify_all()

    @classmethod
    def close(cls, connection: Any) -> None:
        with cls.changed:
            cls.release(connection)
            del cls.of[connection]

    @classmethod
    def abort(cls, transaction: int) -> None:
        """Its session goes on, in a new transaction."""
        for connection, session in list(cls.of.items()):
            if session.transaction == transaction:
                connection._duck_conn.execute("ROLLBACK")
                connection._in_transaction = False
                cls.release(connection)


def execute(cursor: FakeSnowflakeCursor, command: str, *args: Any, **kwargs: Any) -> FakeSnowflakeCursor:
    session = Locks.of.setdefault(cursor._conn, Session())
    session.running = True
    try:
        return execute_in(cursor, session, command, *args, **kwargs)
    finally:
        session.running, session.ended = False, time.time()


def execute_in(
    cursor: FakeSnowflakeCursor, session: Session, command: str, *args: Any, **kwargs: Any
) -> FakeSnowflakeCursor:
    connection = cursor._conn
    if Denied.words and command.upper().startswith(Denied.words):
        Denied.words = ""
        raise ProgrammingError(msg="Insufficient privileges to operate on schema", errno=3001, sqlstate="42501")
    if changed := CHANGE.match(command):
        if changed[1].upper() in LOCKING:
            Locks.take(connection, ".".join(parts(changed[2])))
        if not session.transaction and not connection._autocommit:
            execute_as_before(cursor, "COMMIT")  # a statement reads what is committed before it
            session.transaction = next(Session.numbers)
        try:
            return execute_as_before(cursor, command, *args, **kwargs)
        finally:
            if connection._autocommit:
                Locks.release(connection)
    done = execute_other(cursor, command, *args, **kwargs)
    if END.match(command):
        Locks.release(connection)
    return done


def execute_other(cursor: FakeSnowflakeCursor, command: str, *args: Any, **kwargs: Any) -> FakeSnowflakeCursor:
    if command.strip().upper() == "COMMIT" and (Losing.what or Losing.session is cursor._conn):
        return lose(cursor)
    if NO_EFFECT.match(command):
        return execute_as_before(cursor, DONE)
    if GRANTS.match(command):
        return execute_as_before(cursor, NO_GRANTS)
    if shown := SHOW.match(command):
        return execute_as_before(cursor, locks() if shown[1].upper() == "LOCKS" else transactions())
    if parameter := PARAMETER.match(command):
        given = Locks.of[cursor._conn].parameters
        return execute_as_before(cursor, values(PARAMETER_COLUMNS, [(parameter[1], given.get(parameter[1], ""))]))
    if CURRENT.match(command):
        return execute_as_before(cursor, f"SELECT '{Locks.of[cursor._conn].transaction or ''}' AS t")
    if aborted := ABORT.match(command):
        Locks.abort(int(aborted[1]))
        return execute_as_before(cursor, DONE)
    command = HISTORY.sub(history, command)
    if not DDL.match(command):
        return execute_as_before(cursor, command, *args, **kwargs)
    commit(cursor)
    if swapped := SWAP.match(command):
        old, new = swapped[1], swapped[2]
        between = f'{old.rpartition(".")[0]}."_swap"'
        for one, other in ((old, between), (new, old), (between, new)):
            rename(cursor, one, other)
        return execute_as_before(cursor, DONE)
    if renamed := RENAME.match(command):
        return rename(cursor, renamed[1], renamed[2])
    if dropped := DROP.match(command):
        forget_comment(cursor, dropped[1])
    return execute_as_before(cursor, command, *args, **kwargs)


def commit(cursor: FakeSnowflakeCursor) -> None:
    execute_as_before(cursor, "COMMIT")
    Locks.release(cursor._conn)


def locks() -> str:
    with Locks.changed:
        held = [(table, "PARTITIONS", Locks.of[owner].transaction, "HOLDING") for table, owner in Locks.held.items()]
    return values(LOCK_COLUMNS, held)


def transactions() -> str:
    running = [(one.transaction, one.number, "running") for one in list(Locks.of.values()) if one.transaction]
    return values(TRANSACTION_COLUMNS, running)


def values(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    listed = rows or [("",) * len(columns)]
    texts = [", ".join(f"'{value}' AS {name}" for name, value in zip(columns, row, strict=True)) for row in listed]
    return f"SELECT * FROM ({' UNION ALL '.join(f'SELECT {text}' for text in texts)}) WHERE {bool(rows)}"


def history(found: re.Match[str]) -> str:
    """The last statement of a session; none of one that is closed."""
    session = next((one for one in list(Locks.of.values()) if one.number == int(found[1])), None)
    ended = datetime.fromtimestamp(session.ended if session else 0, UTC).isoformat(sep=" ")
    status = "RUNNING" if session and session.running else "SUCCESS"
    columns = f"CAST('{ended}' AS TIMESTAMP_TZ) AS END_TIME, '{status}' AS EXECUTION_STATUS"
    return f"(SELECT {columns} WHERE {session is not None})"


async def idle(request: Request) -> PlainTextResponse:
    for session in Locks.of.values():
        if not session.running:
            session.ended = time.time() - HOUR_S
    return PlainTextResponse("idle")


def lose(cursor: FakeSnowflakeCursor) -> FakeSnowflakeCursor:
    """The client gets an error of the server, which it takes for a lost connection."""
    if Losing.what == "answer":
        commit(cursor)
    Losing.what, Losing.session = "", cursor._conn
    raise ConnectionError("lost")


async def arm(request: Request) -> PlainTextResponse:
    Losing.what = request.path_params["what"]
    return PlainTextResponse("armed")


async def deny(request: Request) -> PlainTextResponse:
    Denied.words = request.path_params["words"]
    return PlainTextResponse("denied")


def rename(cursor: FakeSnowflakeCursor, old: str, new: str) -> FakeSnowflakeCursor:
    done = execute_as_before(cursor, f"ALTER TABLE {old} RENAME TO {new}")
    forget_comment(cursor, new)
    cursor._duck_conn.execute(f"UPDATE {COMMENTS} SET {KEY[2]} = ? WHERE {SAME}", [parts(new)[-1], *parts(old)])
    return done


def forget_comment(cursor: FakeSnowflakeCursor, table: str) -> None:
    cursor._duck_conn.execute(f"DELETE FROM {COMMENTS} WHERE {SAME}", parts(table))


def parts(name: str) -> list[str]:
    return [exact_name(part) for part in re.findall(PART, name)]


def exact_name(part: str) -> str:
    return part[1:-1].replace('""', '"') if part.startswith('"') else part.upper()


def source_urls(source: str, files: list[str]) -> list[str]:
    if source.startswith("s3://"):
        return [fetched(f"{source.rstrip('/')}/{file}") for file in files]
    return urls_as_before(source, files) if "://" in source else [f"{source.rstrip('/')}/{file}" for file in files]


@cache
def store() -> pyarrow.fs.S3FileSystem:
    given = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    scheme, _, host = given["endpoint"].partition("://")
    keys = {"access_key": given["key"], "secret_key": given["secret"]}
    return pyarrow.fs.S3FileSystem(**keys, endpoint_override=host, scheme=scheme, region="us-east-1")


def fetched(url: str) -> str:
    """The path of a local copy."""
    folder = Path(tempfile.gettempdir(), "cdc-snowflake-stage")
    path = folder / url.rpartition("/")[2]
    folder.mkdir(exist_ok=True)
    with store().open_input_stream(url.removeprefix("s3://")) as content:
        path.write_bytes(content.read())
    return str(path)


def nullable_struct(times: Any) -> pa.Array:
    times = times.combine_chunks() if isinstance(times, pa.ChunkedArray) else times
    struct = struct_as_before(times)
    return pa.StructArray.from_arrays(struct.flatten(), fields=list(struct.type), mask=times.is_null())


async def login(request: Request) -> JSONResponse:
    """With a master token, without which the client does not end its session."""
    response = await server.login_request(request)
    body = json.loads(response.body)
    sent = await request.body()
    given = json.loads(gzip.decompress(sent) if request.headers.get("Content-Encoding") == "gzip" else sent)
    session = Locks.of.setdefault(server.sessions[body["data"]["token"]], Session())
    session.parameters = given["data"]["SESSION_PARAMETERS"]
    session.lock_limit_s = float(session.parameters.get("LOCK_TIMEOUT", session.lock_limit_s))
    body["data"]["masterToken"] = body["data"]["token"]
    return JSONResponse(body, response.status_code)


def save_text_lengths(catalog: str, schema: str, table: str, lengths: list[tuple[str, int]]) -> str:
    quoted = [(column.replace("'", "''"), size) for column, size in lengths]
    return str(text_lengths_before(catalog, schema, table, quoted))


class Sessions(dict[str, Any]):
    def __delitem__(self, token: str) -> None:
        Locks.close(self[token])
        self[token].close()
        super().__delitem__(token)


FakeSnowflakeCursor.execute = execute
FakeSnowflakeCursor._inline_variables = lambda _, statement: statement  # no session sets any
server.sessions = Sessions()
arrow.timestamp_to_sf_struct = nullable_struct
server.app.router.routes[:0] = [
    Route("/lose/{what}", arm, methods=["POST"]),
    Route("/deny/{words}", deny, methods=["POST"]),
    Route("/idle", idle, methods=["POST"]),
    Route("/session/v1/login-request", login, methods=["POST"]),
]
copy_into._source_urls = source_urls
info_schema.insert_text_lengths_sql = save_text_lengths
server.shared_fs.create_database_on_connect = server.shared_fs.create_schema_on_connect = False

if __name__ == "__main__":
    uvicorn.run(server.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
