"""The calls of the REST API that the connector uses."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from airflow_cdc_provider.connectors.sources.salesforce.failures import rest_failure
from airflow_cdc_provider.connectors.sources.salesforce.http import Http, parse_error, server_time
from airflow_cdc_provider.connectors.sources.salesforce.types import ObjectSchema, parse_description

CALLS_PER_REQUEST = 25
IDS_PER_RETRIEVE = 2000
ROWS_PER_PAGE = 2000
COUNTS_PER_REQUEST = 100
"""The names are in the URL, whose length is limited."""

HIDDEN = (403, 404)

Row = Mapping[str, Any]


class Rest:
    """Raises what ``Http.send`` raises."""

    def __init__(self, http: Http, version: str) -> None:
        self.http = http
        self.root = f"/services/data/v{version}"

    def versions(self) -> list[str]:
        return [str(version["version"]) for version in self.http.json("GET", "/services/data/")]

    def describe(self, entity: str) -> ObjectSchema:
        return parse_description(self.http.json("GET", f"{self.root}/sobjects/{entity}/describe"))

    def describe_all(self, entities: Collection[str]) -> list[ObjectSchema]:
        """Sorted by name; 25 objects per call. Objects that the user cannot see are omitted."""
        names = sorted(entities)
        starts = range(0, len(names), CALLS_PER_REQUEST)
        return [parse_description(row) for start in starts for row in self._describe_first(names[start:])]

    def limits(self) -> dict[str, tuple[int, int]]:
        """Name -> (maximum, remaining) of the last 24 hours, or of a month for monthly limits."""
        limits = self.http.json("GET", f"{self.root}/limits")
        return {name: (limit["Max"], limit["Remaining"]) for name, limit in limits.items()}

    def now(self) -> datetime:
        """The server's clock."""
        return server_time(self.http.send("GET", f"{self.root}/limits"))

    def record_counts(self, entities: Collection[str]) -> dict[str, int]:
        """Object → number of records, as Salesforce last counted them. Objects that it does not count are left out.
        Raises CheckFailed without the permission View Setup and Configuration."""
        names, counts = sorted(entities), dict[str, int]()
        for start in range(0, len(names), COUNTS_PER_REQUEST):
            listed = ",".join(names[start : start + COUNTS_PER_REQUEST])
            response = self.http.json("GET", f"{self.root}/limits/recordCount", params={"sObjects": listed})
            counts |= {str(entity["name"]): int(entity["count"]) for entity in response["sObjects"]}
        return counts

    def objects(self) -> list[Row]:
        """The summaries of all objects that the user can see."""
        return list(self.http.json("GET", f"{self.root}/sobjects")["sobjects"])

    def query(self, soql: str) -> Iterator[Row]:
        """Deleted and archived records included. Each page has its own cursor, so that a failed page can be requested
        again."""
        path = f"{self.root}/queryAll"
        headers = {"Sforce-Query-Options": f"batchSize={ROWS_PER_PAGE}"}
        response = self.http.json("GET", path, params={"q": soql}, headers=headers)
        while True:
            yield from map(_columns, response["records"])
            if response["done"]:
                return
            response = self.http.json("GET", response["nextRecordsUrl"], headers=headers)

    def count(self, soql: str) -> int:
        """The result of a COUNT() query, deleted and archived records included."""
        return int(self.http.json("GET", f"{self.root}/queryAll", params={"q": soql})["totalSize"])

    def tooling(self, soql: str) -> list[Row]:
        response = self.http.json("GET", f"{self.root}/tooling/query", params={"q": soql})
        rows = list(response["records"])
        while not response["done"]:
            response = self.http.json("GET", response["nextRecordsUrl"])
            rows += response["records"]
        return [_columns(row) for row in rows]

    def retrieve(self, entity: str, ids: Sequence[str], fields: Sequence[str]) -> dict[str, Row | None]:
        """Id -> record; None if it is deleted or hidden. 2,000 ids per call."""
        records: dict[str, Row | None] = {}
        for start in range(0, len(ids), IDS_PER_RETRIEVE):
            chunk = list(ids[start : start + IDS_PER_RETRIEVE])
            body = {"ids": chunk, "fields": list(fields)}
            rows = self.http.json("POST", f"{self.root}/composite/sobjects/{entity}", json=body)
            records |= {record_id: _columns(row) if row else None for record_id, row in zip(chunk, rows, strict=True)}
        return records

    def deleted(self, entity: str, start: datetime, end: datetime) -> tuple[str, ...]:
        """Ids of deleted records: at most 600,000, and of the last 15 days. Raises Blocked (SRC045) if the list of that
        interval was purged."""
        interval = {"start": _format_timestamp(start), "end": _format_timestamp(end)}
        response = self.http.json("GET", f"{self.root}/sobjects/{entity}/deleted/", params=interval)
        return tuple(record["id"] for record in response["deletedRecords"])

    def _describe_first(self, entities: Sequence[str]) -> Iterator[Row]:
        """As many objects as one composite request can have."""
        paths = [f"{self.root}/sobjects/{entity}/describe" for entity in entities[:CALLS_PER_REQUEST]]
        calls = [{"method": "GET", "url": path, "referenceId": f"at{index}"} for index, path in enumerate(paths)]
        request = {"allOrNone": False, "compositeRequest": calls}
        responses = self.http.json("POST", f"{self.root}/composite", json=request)["compositeResponse"]
        for path, response in zip(paths, responses, strict=True):
            status, body = response["httpStatusCode"], response["body"]
            if status == 200:
                yield body
            elif status not in HIDDEN:
                raise rest_failure(status, *parse_error(body), f"GET {path}")


def _columns(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "attributes"}


def _format_timestamp(timestamp: datetime) -> str:
    return timestamp.astimezone(UTC).isoformat(timespec="seconds")
