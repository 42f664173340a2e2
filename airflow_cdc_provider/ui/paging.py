"""Pages of lists that are ordered by a name or a number: a cursor is that of the last item of a page."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import HTTPException, Query, status

from airflow_cdc_provider.ui.texts import NO_CONTROLS

Item = TypeVar("Item")

MAX_LIMIT = 200

Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Cursor = Annotated[str, Query(max_length=2000)]


def after(cursor: str) -> str:
    """The name after which the page begins. HTTP 422 for a text that is no cursor."""
    try:
        name = base64.b64decode(cursor.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError, ValueError):
        name = "\0"
    if not re.match(NO_CONTROLS, name):
        raise _not_a_cursor()
    return name


def before(cursor: str) -> int | None:
    """The number that all items of the page are below; None for the first page. HTTP 422 for a text that is no
    cursor."""
    name = after(cursor)
    if name and not name.isdecimal():
        raise _not_a_cursor()
    return int(name) if name else None


def page(found: Sequence[Item], limit: int, name: Callable[[Item], str]) -> tuple[Sequence[Item], dict[str, Any]]:
    """``found``: one more than ``limit``, if there are more. Returns the items and ``next_cursor``."""
    more = len(found) > limit
    items = found[:limit]
    cursor = base64.urlsafe_b64encode(name(items[-1]).encode()).decode() if more else None
    return items, {"next_cursor": cursor}


def _not_a_cursor() -> HTTPException:
    return HTTPException(status.HTTP_422_UNPROCESSABLE_CONTENT, "the cursor is not one of this list")
