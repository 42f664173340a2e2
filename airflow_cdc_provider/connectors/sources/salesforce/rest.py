"""The calls we make of the REST interface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.failures import rest_failure
from airflow_cdc_provider.connectors.sources.salesforce.http import Http, server_time, told

CALLS_AT_ONCE = 25
IDS_PER_RETRIEVE = 2000
ROWS_PER_PAGE = 2000
HIDDEN = (403, 404)

Row = Mapping[str, Any]


class Rest:
    """Raises what ``Http.send`` raises."""

    def __init__(self, http: Http, version: str) -> None:
        self.http = http
        self.root = f"/services/data/v{version}"

    def versions(self) -> list[str]:
        return [str(one["version"]) for one in self.http.json("GET", "/services/data/")]

    def describe(self, entity: str) -> Row:
        answer: Row = self.http.json("GET", f"{self.root}/sobjects/{entity}/describe")
        return answer

    def describe_all(self, entities: Sequence[str]) -> list[Row]:
        """25 objects in what counts as one call. Those that this user does not see are left out."""
        return [row for start in range(0, len(entities), CALLS_AT_ONCE) for row in self._described(entities[start:])]

    def limits(self) -> dict[str, tuple[int, int]]:
        """Name -> (most, left) within 24 hours, or a month for monthly ones."""
        answer = self.http.json("GET", f"{self.root}/limits")
        return {name: (limit["Max"], limit["Remaining"]) for name, limit in answer.items()}

    def now(self) -> datetime:
        """The server's clock."""
        return server_time(self.http.send("GET", f"{self.root}/limits"))

    def query(self, soql: str, *, deleted: bool = False) -> Iterator[Row]:
        """Rows, page by page; with ``deleted`` those in the recycle bin and archived ones too. A page that fails is
        asked for again by its own cursor."""
        path = f"{self.root}/{'queryAll' if deleted else 'query'}"
        headers = {"Sforce-Query-Options": f"batchSize={ROWS_PER_PAGE}"}
        answer = self.http.json("GET", path, params={"q": soql}, headers=headers)
        while True:
            yield from map(_plain, answer["records"])
            if answer["done"]:
                return
            answer = self.http.json("GET", answer["nextRecordsUrl"], headers=headers)

    def count(self, soql: str, *, deleted: bool = False) -> int:
        """What a query of COUNT() says."""
        path = f"{self.root}/{'queryAll' if deleted else 'query'}"
        return int(self.http.json("GET", path, params={"q": soql})["totalSize"])

    def tooling(self, soql: str) -> list[Row]:
        answer = self.http.json("GET", f"{self.root}/tooling/query", params={"q": soql})
        rows = list(answer["records"])
        while not answer["done"]:
            answer = self.http.json("GET", answer["nextRecordsUrl"])
            rows += answer["records"]
        return [_plain(row) for row in rows]

    def retrieve(self, entity: str, ids: Sequence[str], fields: Sequence[str]) -> dict[str, Row | None]:
        """Id -> record; None where it is gone or hidden. 2,000 ids a call."""
        found: dict[str, Row | None] = {}
        for start in range(0, len(ids), IDS_PER_RETRIEVE):
            some = list(ids[start : start + IDS_PER_RETRIEVE])
            body = {"ids": some, "fields": list(fields)}
            answer = self.http.json("POST", f"{self.root}/composite/sobjects/{entity}", json=body)
            found |= {one: _plain(row) if row else None for one, row in zip(some, answer, strict=True)}
        return found

    def deleted(self, entity: str, start: datetime, end: datetime) -> tuple[str, ...]:
        """Ids; at most 15 days back and 600,000. Raises Blocked (SRC045) where the list was purged."""
        interval = {"start": _written(start), "end": _written(end)}
        answer = self.http.json("GET", f"{self.root}/sobjects/{entity}/deleted/", params=interval)
        return tuple(one["id"] for one in answer["deletedRecords"])

    def _described(self, entities: Sequence[str]) -> Iterator[Row]:
        paths = [f"{self.root}/sobjects/{entity}/describe" for entity in entities[:CALLS_AT_ONCE]]
        calls = [{"method": "GET", "url": path, "referenceId": f"at{at}"} for at, path in enumerate(paths)]
        answer = self.http.json("POST", f"{self.root}/composite", json={"allOrNone": False, "compositeRequest": calls})
        for path, one in zip(paths, answer["compositeResponse"], strict=True):
            status, body = one["httpStatusCode"], one["body"]
            if status == 200:
                yield body
            elif status not in HIDDEN:
                raise rest_failure(status, *told(body), f"GET {path}")


def _plain(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "attributes"}


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
