"""fakesnow behind HTTP, corrected where it differs from Snowflake in what a target needs. Runs in an environment of its
own (``snowflake.py`` makes it): ``python snowflake_server.py PORT``.

Corrected: DDL commits the transaction; a comment follows its table to another name; SWAP WITH; COPY from named files of
an internal stage; REMOVE. Answered without effect: ALTER SESSION, SHOW GRANTS (no grants).
"""

from __future__ import annotations

import re
import sys
from typing import Any

import uvicorn
from fakesnow import copy_into
from fakesnow.cursor import FakeSnowflakeCursor
from fakesnow.server import app

QUOTED = r'((?:"(?:[^"]|"")*"\.?)+)'
DDL = re.compile(r"\s*(CREATE|ALTER|DROP)\b", re.IGNORECASE)
NO_EFFECT = re.compile(r"\s*(ALTER SESSION|REMOVE)\b", re.IGNORECASE)
GRANTS = re.compile(r"\s*SHOW GRANTS\b", re.IGNORECASE)
RENAME = re.compile(rf"\s*ALTER TABLE {QUOTED} RENAME TO {QUOTED}\s*$", re.IGNORECASE)
SWAP = re.compile(rf"\s*ALTER TABLE {QUOTED} SWAP WITH {QUOTED}\s*$", re.IGNORECASE)
NO_GRANTS = "SELECT '' AS privilege, '' AS granted_to, '' AS grantee_name, '' AS grant_option WHERE false"
COMMENTS = "_fs_global._fs_information_schema._fs_tables_ext"
KEY = ("ext_table_catalog", "ext_table_schema", "ext_table_name")

execute_as_before = FakeSnowflakeCursor.execute
urls_as_before = copy_into._source_urls


def execute(cursor: FakeSnowflakeCursor, command: str, *args: Any, **kwargs: Any) -> FakeSnowflakeCursor:
    if NO_EFFECT.match(command):
        return execute_as_before(cursor, "SELECT 'Statement executed successfully.' AS status")
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
        return execute_as_before(cursor, "SELECT 'Statement executed successfully.' AS status")
    if renamed := RENAME.match(command):
        return rename(cursor, renamed[1], renamed[2])
    done = execute_as_before(cursor, command, *args, **kwargs)
    return done


def rename(cursor: FakeSnowflakeCursor, old: str, new: str) -> FakeSnowflakeCursor:
    done = execute_as_before(cursor, f"ALTER TABLE {old} RENAME TO {new}")
    before, after = parts(old), parts(new)
    duck = cursor._duck_conn
    same = " AND ".join(f"{name} = ?" for name in KEY)
    duck.execute(f"DELETE FROM {COMMENTS} WHERE {same}", after)
    duck.execute(f"UPDATE {COMMENTS} SET {KEY[2]} = ? WHERE {same}", [after[2], *before])
    return done


def parts(name: str) -> list[str]:
    return [part.replace('""', '"') for part in re.findall(r'"((?:[^"]|"")*)"', name)]


def source_urls(source: str, files: list[str]) -> list[str]:
    return urls_as_before(source, files) if "://" in source else [f"{source.rstrip('/')}/{file}" for file in files]


FakeSnowflakeCursor.execute = execute
copy_into._source_urls = source_urls

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
