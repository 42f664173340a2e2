"""Cursors of the REST query. The result of a query does not change for two days."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from airflow_cdc_provider.sandbox.salesforce.clock import Clock
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row

LIFE_S = 2 * 86_400


@dataclass(frozen=True)
class Cursor:
    object: ObjectType
    fields: Sequence[Field]
    rows: Sequence[Row]
    page_rows: int
    opened_ms: int


class Cursors:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[str, Cursor] = {}

    def open(self, object_type: ObjectType, fields: Sequence[Field], rows: Sequence[Row], page_rows: int) -> str:
        key = f"01g5g0000{secrets.token_hex(5)[:9]}"
        self._open[key] = Cursor(object_type, fields, rows, page_rows, self._clock.now_ms())
        return key

    def find(self, key: str) -> Cursor:
        """Raises ApiError INVALID_QUERY_LOCATOR (400)."""
        cursor = self._open.get(key)
        if cursor is None or self._clock.now_ms() - cursor.opened_ms > LIFE_S * 1000:
            raise ApiError(400, "INVALID_QUERY_LOCATOR", "invalid query locator")
        return cursor

    def expire(self) -> None:
        self._open.clear()
