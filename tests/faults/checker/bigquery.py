"""The states of tables in a dataset of BigQuery, read without Google's client: one SELECT is one snapshot."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import requests

from tests.faults.checker.database import State, own_control_table
from tests.faults.checker.ledger import Shape

MARK = re.compile(r"cdc:([0-9a-f]{32})")
LIMIT_S = 60


class Missing(Exception):
    """No table, or no longer the same one."""


@dataclass(frozen=True)
class Dataset:
    url: str
    project: str
    name: str

    def state(self, shape: Shape) -> State | None:
        table = shape.target
        try:
            identity = self._identity(table)
            if not identity:
                return None
            rows = f"ARRAY(SELECT TO_JSON_STRING(r) FROM {self.name}.{table} AS r)"
            control = f"{self.name}.{own_control_table(table)}"
            found = self.execute(f"SELECT record, {rows} FROM {control} WHERE identity = '{identity}'")
            if not found or self._identity(table) != identity:
                return None
        except Missing:
            return None
        record, texts = found[0]
        return json.loads(record), [json.loads(text["v"], parse_float=Decimal) for text in texts]

    def texts(self, tables: Sequence[str]) -> list[str]:
        found = []
        for table in tables:
            try:
                found += [
                    record for (record,) in self.execute(f"SELECT record FROM {self.name}.{own_control_table(table)}")
                ]
            except Missing:
                continue  # there is no copy yet
        return found

    def execute(self, sql: str) -> list[list[Any]]:
        body = {"query": sql, "useLegacySql": False, "timeoutMs": LIMIT_S * 1000}
        answer = self._request("POST", "queries", json=body)
        while not answer["jobComplete"]:
            time.sleep(0.1)
            answer = self._request("GET", f"queries/{answer['jobReference']['jobId']}")
        return [[cell["v"] for cell in row["f"]] for row in answer.get("rows", ())]

    def _identity(self, table: str) -> str:
        answer = self._request("GET", f"datasets/{self.name}/tables/{table}")
        found = MARK.search(answer.get("description", ""))
        return found[1] if found else ""

    def _request(self, method: str, path: str, **more: Any) -> dict[str, Any]:
        url = f"{self.url}/bigquery/v2/projects/{self.project}/{path}"
        answer = requests.request(method, url, timeout=LIMIT_S, **more)
        if answer.status_code == 404:
            raise Missing(path)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found
