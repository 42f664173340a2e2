"""local-bigquery behind HTTP, corrected where it differs from BigQuery in what a target needs. Runs in an environment
of its own (``sandbox/environments.py`` makes it): ``python -P bigquery.py PORT STREAM_PORT FOLDER``.

Corrected: a table that is a COPY has the partitioning, the clustering and the options of its source, and OPTIONS of
its own, at once with its name; GRANT on a table, and a table that is replaced has no grants; DDL in a transaction, and
changes without WHERE, are refused; the number of rows of a table; BIGNUMERIC with up to 38 digits at any scale; bytes
in Parquet; a literal with a backslash before ``x27``; a conflict of transactions has BigQuery's message; 10 MB are
billed for each query. ``gs://`` is a folder, with the requests of Cloud Storage that write, list and remove objects.
``/lose/request`` and ``/lose/answer`` lose the next script with a COMMIT, or its answer: the connection breaks.
``/fail/REASON`` makes the next query fail for this reason. ``/slow/MILLISECONDS``: the options of the next COPY take so
long.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import sqlglot
import uvicorn
from local_bigquery import errors
from local_bigquery.app import app
from local_bigquery.catalog import ddl as catalog_ddl
from local_bigquery.catalog import iam, names, tables
from local_bigquery.engine import database, types
from local_bigquery.errors import BigQueryError
from local_bigquery.grpc import server as streams
from local_bigquery.jobs import load as loads
from local_bigquery.jobs import query, runner
from local_bigquery.models import Policy
from local_bigquery.settings import settings
from local_bigquery.sql import script
from local_bigquery.sql.dialect import BigQueryDialect
from local_bigquery.sql.rules import ddl, strings
from sqlglot import exp
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route

BILLED, SLOT_MS = str(10 * 2**20), "100"
LARGEST_DECIMAL = 38
NAME = r"((?:`[^`]+`|[\w-]+)(?:\.(?:`[^`]+`|[\w-]+))*)"
COPY = re.compile(rf"^(CREATE\b.*\bCOPY\s+{NAME})\s+(OPTIONS\s*\(.*\))$", re.S)
REPLACED = re.compile(rf"^\s*CREATE\s+OR\s+REPLACE\s+TABLE\s+{NAME}\s+COPY\b")
GRANT = re.compile(rf"^\s*GRANT\s+`([^`]+)`\s+ON\s+TABLE\s+{NAME}\s+TO\s+(.*?)\s*$", re.S)
CHANGE, WHERE = re.compile(r"^\s*(UPDATE|DELETE)\b"), re.compile(r"\bWHERE\b")
DDL = re.compile(r"^\s*(CREATE|ALTER|DROP)\b")
CONFLICT = re.compile(r"conflict", re.IGNORECASE)
CANCELLED = "Transaction is aborted due to concurrent update against table"
KEPT = ("timePartitioning", "rangePartitioning", "clustering", "labels", "description")

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


COPYING = threading.RLock()
"""Held while a COPY makes a table and then sets its options: no request reads the table without them."""


class Armed:
    """``lose``: of the next script with a COMMIT. ``fail``: the reason of the next job's failure. ``slow_s``: the
    options of the next COPY."""

    lose = ""
    fail = ""
    slow_s = 0.0


normalise_as_before = ddl.normalise
apply_as_before = catalog_ddl.apply
type_as_before = types.duckdb_type
load_as_before = tables.load
error_as_before = errors.from_duckdb
query_as_before = runner._query
sql_as_before = script.Interpreter.sql


def normalise(tree: Any) -> Any:
    """OPTIONS after COPY, which the parser lacks."""
    text = tree.sql(dialect=BigQueryDialect).strip() if isinstance(tree, exp.Command) else ""
    found = COPY.match(text)
    if not found:
        return normalise_as_before(tree)
    copied = sqlglot.parse_one(found[1], dialect=BigQueryDialect)
    options = sqlglot.parse_one(f"CREATE TABLE t (c INT64) {found[3]}", dialect=BigQueryDialect)
    copied.set("properties", options.args["properties"])
    return normalise_as_before(copied)


def apply(tree: Any, project_id: str, dataset_id: str, evaluate: Any) -> None:
    clone = tree.args.get("clone") if isinstance(tree, exp.Create) else None
    source = tables.load(*names.reference(clone.this, project_id, dataset_id)) if clone else None
    if source is not None:
        slow_s, Armed.slow_s = Armed.slow_s, 0.0
        time.sleep(slow_s)
    apply_as_before(tree, project_id, dataset_id, evaluate)
    if source is not None:
        reference = names.reference(tree.find(exp.Table), project_id, dataset_id)
        made = tables.load(*reference)
        kept = {name: getattr(source, name) for name in KEPT if getattr(made, name) is None}
        tables.record(*reference, made.replace(**{name: value for name, value in kept.items() if value is not None}))


def duckdb_type(field: Any) -> str:
    precise = field.precision and int(field.precision) <= LARGEST_DECIMAL
    if (field.type or "").upper() in ("BIGNUMERIC", "BIGDECIMAL") and precise:
        return f"DECIMAL({field.precision},{field.scale or 0})"
    return str(type_as_before(field))


def load(project_id: str, dataset_id: str, table_id: str) -> Any:
    with COPYING:
        found = load_as_before(project_id, dataset_id, table_id)
    if found.type != "TABLE" or dataset_id == tables.RESULTS:
        return found
    ((rows,),) = database.fetch(f"SELECT count(*) FROM {tables.name(project_id, dataset_id, table_id)}")
    return found.replace(numRows=str(rows))


def undecoded(expression: str, field: Any, depth: int = 0) -> str:
    """Bytes are base64 in the other formats only."""
    return expression


def from_duckdb(error: Exception, *more: Any) -> BigQueryError:
    if CONFLICT.search(str(error)):
        return BigQueryError("invalidQuery", CANCELLED)
    return error_as_before(error, *more)


def run_query(job: Any, *more: Any) -> Any:
    reason, Armed.fail = Armed.fail, ""
    if reason:
        raise BigQueryError(reason, f"failed for {reason}")
    return query_as_before(job, *more)


def execute(interpreter: Any, statement: Any) -> None:
    text, context = statement.text, interpreter.context
    if text.upper().startswith("BEGIN TRANSACTION"):
        context.in_transaction = True
    elif text.upper().startswith(("COMMIT", "ROLLBACK")):
        context.in_transaction = False
    if getattr(context, "in_transaction", False) and DDL.match(text):
        raise BigQueryError("invalidQuery", "DDL of permanent tables is not supported inside a transaction")
    if CHANGE.match(text) and not WHERE.search(text):
        raise BigQueryError("invalidQuery", "UPDATE and DELETE must have a WHERE clause")
    granted = GRANT.match(text)
    if granted:
        grant(context, *granted.groups())
    else:
        with COPYING if COPY.match(text.rstrip().rstrip(";")) else contextlib.nullcontext():
            sql_as_before(interpreter, statement)
    if replaced := REPLACED.match(text):
        iam.set_(resource_of(context, replaced[1]), Policy(version=1))


def grant(context: Any, role: str, table: str, members: str) -> None:
    resource = resource_of(context, table)
    added = [{"role": role, "members": re.findall(r'"([^"]+)"', members)}]
    before = iam.get(resource).dump().get("bindings") or []
    iam.set_(resource, Policy.model_validate({"bindings": [*before, *added]}))


def resource_of(context: Any, table: str) -> str:
    path = exp.to_table(table, dialect="bigquery")
    project_id, dataset_id, table_id = names.reference(path, context.project_id, context.dataset_id)
    return f"projects/{project_id}/datasets/{dataset_id}/tables/{table_id}"


class Losing:
    """Outside all others: it has the connection."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_job = scope["type"] == "http" and scope["method"] == "POST" and scope["path"].endswith("/jobs")
        if not (Armed.lose and is_job):
            await self.inner(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay() -> dict[str, Any]:
            return next(messages, None) or await receive()

        if b"COMMIT TRANSACTION" not in body:
            await self.inner(scope, replay, send)
            return
        lose, Armed.lose = Armed.lose, ""
        if lose == "answer":
            await self.inner(scope, replay, nowhere)
        send.__self__.transport.abort()  # type: ignore[attr-defined]


async def nowhere(message: dict[str, Any]) -> None:
    """The answer is lost."""


async def arm(request: Request) -> PlainTextResponse:
    Armed.lose = request.path_params["what"]
    return PlainTextResponse("armed")


async def fail(request: Request) -> PlainTextResponse:
    Armed.fail = request.path_params["reason"]
    return PlainTextResponse("armed")


async def slow(request: Request) -> PlainTextResponse:
    Armed.slow_s = int(request.path_params["milliseconds"]) / 1000
    return PlainTextResponse("armed")


async def lost(request: Request) -> JSONResponse:
    """What is still to be lost."""
    return JSONResponse({"lost": Armed.lose})


def object_file(bucket: str, name: str) -> Path:
    return Path(settings.gcs_local_root) / bucket / name


async def write_object(request: Request) -> JSONResponse:
    path = object_file(request.path_params["bucket"], request.query_params["name"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(await request.body())
    return JSONResponse({"name": request.query_params["name"]})


async def list_objects(request: Request) -> JSONResponse:
    root, prefix = object_file(request.path_params["bucket"], ""), request.query_params["prefix"]
    found = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    return JSONResponse({"items": [{"name": name} for name in found if name.startswith(prefix)]})


async def remove_object(request: Request) -> PlainTextResponse:
    path = object_file(request.path_params["bucket"], request.path_params["name"])
    if not path.exists():
        return PlainTextResponse(json.dumps({"error": {"code": 404, "message": "no object"}}), 404)
    path.unlink()
    return PlainTextResponse("", 204)


ddl.normalise = query.ddl.normalise = normalise
catalog_ddl.apply = query.catalog_ddl.apply = apply
strings.ESCAPE = re.compile("(?!)")  # the parser has replaced the escapes already
types.duckdb_type = duckdb_type
tables.load = load
loads._decoded = undecoded
errors.from_duckdb = query.from_duckdb = from_duckdb
errors.STATUSES |= {"rateLimitExceeded": (403, "RESOURCE_EXHAUSTED"), "backendError": (500, "INTERNAL")}
runner._query = run_query
runner.QUERY_STATISTICS |= {"totalBytesBilled": BILLED, "totalSlotMs": SLOT_MS}
script.Interpreter.sql = execute
app.router.routes[:0] = [
    Route("/lose/{what}", arm, methods=["POST"]),
    Route("/fail/{reason}", fail, methods=["POST"]),
    Route("/slow/{milliseconds}", slow, methods=["POST"]),
    Route("/lost", lost),
    Route("/upload/storage/v1/b/{bucket}/o", write_object, methods=["POST"]),
    Route("/storage/v1/b/{bucket}/o", list_objects),
    Route("/storage/v1/b/{bucket}/o/{name:path}", remove_object, methods=["DELETE"]),
]

sys.modules["pandas"] = None  # type: ignore[assignment]  # DuckDB looks for it in each query

if __name__ == "__main__":
    folder = Path(sys.argv[3])
    settings.data_dir, settings.gcs_local_root = folder / "data", folder / "buckets"
    stream_server = streams.start("127.0.0.1", int(sys.argv[2]))  # it stops when nothing refers to it
    uvicorn.run(Losing(app), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
