"""Files in a folder of Cloud Storage that load jobs read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.google import google_login, google_options, storage_endpoint
from airflow_cdc_provider.core.registry import load_library

GOOGLE = "https://storage.googleapis.com"
REQUEST_LIMIT_S = 300


@dataclass(frozen=True)
class Stage:
    """``folder``: without a slash at its ends; may be empty."""

    connection: ConnectionInfo
    bucket: str
    folder: str

    def upload(self, table: str, part: int, path: Path) -> str:
        """Write an object of a name that no other task uses. Returns the name."""
        name = f"{self._prefix(table)}{part}-{uuid.uuid4().hex}.parquet"
        url = f"{self._url}/upload/storage/v1/b/{self.bucket}/o?uploadType=media&name={quote(name, safe='')}"
        with path.open("rb") as file:
            self._request("POST", url, data=file)
        return name

    def remove(self, table: str) -> None:
        """All files of a table."""
        for name in list(self._names(table)):
            self._request("DELETE", f"{self._objects}/{quote(name, safe='')}")

    def _names(self, table: str) -> Iterator[str]:
        page = ""
        while True:
            url = f"{self._objects}?prefix={quote(self._prefix(table), safe='')}&pageToken={quote(page, safe='')}"
            answer = self._request("GET", url).json()
            yield from (str(item["name"]) for item in answer.get("items", ()))
            page = answer.get("nextPageToken", "")
            if not page:
                return

    def _prefix(self, table: str) -> str:
        return f"{self.folder}/{table}/" if self.folder else f"{table}/"

    @property
    def _url(self) -> str:
        return storage_endpoint(self.connection, google_options(self.connection)) or GOOGLE

    @property
    def _objects(self) -> str:
        return f"{self._url}/storage/v1/b/{self.bucket}/o"

    def _request(self, method: str, url: str, **more: Any) -> Any:
        """Raises ``GoogleAPICallError`` for an answer that is an error; a removed object is none."""
        transport = load_library("google.auth.transport.requests", "target", "bigquery")
        exceptions = load_library("google.api_core.exceptions", "target", "bigquery")
        with transport.AuthorizedSession(google_login(self.connection, "bigquery")[0]) as session:
            answer = session.request(method, url, timeout=REQUEST_LIMIT_S, **more)
        if not answer.ok and not (method == "DELETE" and answer.status_code == 404):
            raise exceptions.from_http_response(answer)
        return answer


def stage_of(connection: ConnectionInfo, location: str) -> Stage | None:
    """``location``: ``gs://bucket/folder``, or empty."""
    if not location:
        return None
    bucket, _, folder = location.removeprefix("gs://").partition("/")
    return Stage(connection, bucket, folder.strip("/"))
