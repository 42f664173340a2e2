"""fakesnow behind HTTP, corrected where it differs from Snowflake in what a target needs. Runs in an environment of its
own (``sandbox/environments.py`` makes it): ``python -P snowflake.py PORT``.

Corrected: DDL commits the transaction, and the end of a session rolls it back; a comment follows its table to another
name, and is dropped with it; SWAP WITH; COPY from named files of an internal stage; NULL in a timestamp with time zone.
Without effect: ALTER SESSION, REMOVE, SHOW GRANTS (no grants). ``/lose/request`` and ``/lose/answer`` lose the next
COMMIT, or its answer, also when repeated.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import import_module
from typing import Any

import pyarrow as pa
import uvicorn
from fakesnow import arrow, copy_into
from fakesnow.cursor import FakeSnowflakeCursor
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

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

execute_as_before = FakeSnowflakeCursor.execute
urls_as_before = copy_into._source_urls


struct_as_before = arrow.timestamp_to_sf_struct


class Losing:
    """``what``: lost of the next COMMIT. ``session``: whose COMMIT was lost."""

    what = ""
    session: object = None


def execute(cursor: FakeSnowflakeCursor, command: str, *args: Any, **kwargs: Any) -> FakeSnowflakeCursor:
    if command.strip().upper() == "COMMIT" and (Losing.what or Losing.session is cursor._conn):
        return lose(cursor)
    if NO_EFFECT.match(command):
        return execute_as_before(cursor, DONE)
    if GRANTS.match(command):
        return execute_as_before(cursor, NO_GRANTS)
    if not DDL.match(command):
        return execute_as_before(cursor, command, *args, **kwargs)
    execute_as_before(cursor, "COMMIT")
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


def lose(cursor: FakeSnowflakeCursor) -> FakeSnowflakeCursor:
    """The client gets an error of the server, which it takes for a lost connection."""
    if Losing.what == "answer":
        execute_as_before(cursor, "COMMIT")
    Losing.what, Losing.session = "", cursor._conn
    raise ConnectionError("lost")


async def arm(request: Request) -> PlainTextResponse:
    Losing.what = request.path_params["what"]
    return PlainTextResponse("armed")


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
    return urls_as_before(source, files) if "://" in source else [f"{source.rstrip('/')}/{file}" for file in files]


def nullable_struct(times: Any) -> pa.Array:
    times = times.combine_chunks() if isinstance(times, pa.ChunkedArray) else times
    struct = struct_as_before(times)
    return pa.StructArray.from_arrays(struct.flatten(), fields=list(struct.type), mask=times.is_null())


async def login(request: Request) -> JSONResponse:
    """With a master token, without which the client does not end its session."""
    response = await server.login_request(request)
    body = json.loads(response.body)
    body["data"]["masterToken"] = body["data"]["token"]
    return JSONResponse(body, response.status_code)


class Sessions(dict[str, Any]):
    def __delitem__(self, token: str) -> None:
        self[token].close()
        super().__delitem__(token)


FakeSnowflakeCursor.execute = execute
server.sessions = Sessions()
arrow.timestamp_to_sf_struct = nullable_struct
server.app.router.routes[:0] = [
    Route("/lose/{what}", arm, methods=["POST"]),
    Route("/session/v1/login-request", login, methods=["POST"]),
]
copy_into._source_urls = source_urls

if __name__ == "__main__":
    uvicorn.run(server.app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
