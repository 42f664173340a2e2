"""The states of tables in Spanner, read as of one time. A table whose merge has begun and not ended has no state: only
a read of the published cut is promised to show none of its parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import NotFound
from google.cloud import spanner

from tests.faults.checker.commits import DELETED, ORDER
from tests.faults.checker.database import State
from tests.faults.checker.ledger import Shape

EVERYTHING = spanner.KeySet(all_=True)
TECHNICAL = {"cdc_order": ORDER, "cdc_deleted": DELETED}


@dataclass(frozen=True)
class Database:
    """``client``: the database, as Google's client has it."""

    client: Any

    def state(self, shape: Shape) -> State | None:
        table = shape.target
        key = spanner.KeySet(keys=[[table]])
        try:
            with self.client.snapshot(multi_use=True) as snapshot:
                control = list(snapshot.read("cdc_control", ["identity", "record", "begun"], key))
                marks = list(snapshot.execute_sql(TABLES, _named(table), KINDS))
                if not control or control[0][2] or [table, f"cdc_copy_{control[0][0]}"] not in marks:
                    return None
                columns = [name for (name,) in snapshot.execute_sql(COLUMNS, {"table": table}, KINDS)]
                names = [TECHNICAL.get(column, column) for column in columns]
                rows = [dict(zip(names, row, strict=True)) for row in snapshot.read(table, columns, EVERYTHING)]
        except NotFound:
            return None
        return json.loads(control[0][1]), rows

    def texts(self, tables: Sequence[str]) -> list[str]:
        try:
            with self.client.snapshot() as snapshot:
                return [str(record) for (record,) in snapshot.read("cdc_control", ["record"], EVERYTHING)]
        except NotFound:
            return []  # there is no copy yet


TABLES = (
    "SELECT t.table_name, c.constraint_name FROM information_schema.tables AS t"
    " LEFT JOIN information_schema.table_constraints AS c ON c.table_schema = t.table_schema"
    " AND c.table_name = t.table_name AND STARTS_WITH(c.constraint_name, @marker)"
    " WHERE t.table_schema = '' AND t.table_type = 'BASE TABLE'"
    " AND (LOWER(t.table_name) = LOWER(@table) OR STARTS_WITH(t.table_name, @prefix) OR t.table_name = @control)"
)
COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = '' AND LOWER(table_name) = LOWER(@table)"
)
KINDS = dict.fromkeys(("marker", "table", "prefix", "control"), spanner.param_types.STRING)


def _named(table: str) -> dict[str, str]:
    return {"marker": "cdc_copy_", "table": table, "prefix": f"{table}_none", "control": "cdc_control"}
