"""The states of tables in Spanner, read as of one time. A table whose merge has begun and not ended has no state: only
a read of the published cut is promised to show none of its parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from google.api_core.exceptions import NotFound
from google.cloud import spanner

from tests.faults.checker.commits import DELETED, ORDER, Commit, commit
from tests.faults.checker.database import DatabaseReader
from tests.faults.checker.ledger import Shape

EVERYTHING = spanner.KeySet(all_=True)


class SpannerReader(DatabaseReader):
    """``create``: creates the database, and returns it as Google's client does."""

    def __init__(self, create: Callable[[], Any]) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self._create = create
        self.database: Any = None

    def __enter__(self) -> DatabaseReader:
        self.database = self._create()
        return super().__enter__()

    def texts(self) -> list[str]:
        try:
            with self.database.snapshot() as snapshot:
                return [str(record) for (record,) in snapshot.read("cdc_control", ["record"], EVERYTHING)]
        except NotFound:
            return []  # there is no copy yet

    def _state(self, shape: Shape) -> Commit | None:
        columns = [*shape.columns, *(["cdc_order"] if shape.key else []), *(["cdc_deleted"] if shape.soft else [])]
        names = [*shape.columns, *([ORDER] if shape.key else []), *([DELETED] if shape.soft else [])]
        key = spanner.KeySet(keys=[[shape.target]])
        try:
            with self.database.snapshot(multi_use=True) as snapshot:
                control = list(snapshot.read("cdc_control", ["identity", "record", "begun"], key))
                rows = [dict(zip(names, row, strict=True)) for row in snapshot.read(shape.target, columns, EVERYTHING)]
                marks = list(snapshot.execute_sql(TABLES, _named(shape.target), KINDS))
        except NotFound:
            return None  # there is no copy, or none with these columns
        if not control or control[0][2] or [shape.target, f"cdc_copy_{control[0][0]}"] not in marks:
            return None
        return commit(len(self.seen.get(shape.target, ())), json.loads(control[0][1]), shape, rows)


TABLES = (
    "SELECT t.table_name, c.constraint_name FROM information_schema.tables AS t"
    " LEFT JOIN information_schema.table_constraints AS c ON c.table_schema = t.table_schema"
    " AND c.table_name = t.table_name AND STARTS_WITH(c.constraint_name, @marker)"
    " WHERE t.table_schema = '' AND t.table_type = 'BASE TABLE'"
    " AND (LOWER(t.table_name) = LOWER(@table) OR STARTS_WITH(t.table_name, @prefix) OR t.table_name = @control)"
)
KINDS = dict.fromkeys(("marker", "table", "prefix", "control"), spanner.param_types.STRING)


def _named(table: str) -> dict[str, str]:
    return {"marker": "cdc_copy_", "table": table, "prefix": f"{table}_none", "control": "cdc_control"}
