"""Values that a source's type has and no logical type has: infinite times, years beyond 1 to 9999, NaN as a decimal.

Nothing is put in their place. Outside the key the definition may let them be NULL with their text beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.table.schema import TableSchema

T = TypeVar("T")
INFINITE = "an infinite time"
OTHER_YEAR = "a year before 1 or after 9999"
NOT_A_NUMBER = "NaN or an infinite number"
NO_DATE = "a date that no calendar has, a zero date for one"


class Unrepresentable(ValueError):
    """``str()`` says what kind of value it is, and nothing of the value. ``text``: as the source spells it, where it is
    known."""

    def __init__(self, what: str, text: str = "") -> None:
        super().__init__(what)
        self.text = text


def or_none(read: Callable[[T], Any]) -> Callable[[T], Any]:
    """For a column whose lacking values stand in one beside it."""

    def told(cell: T) -> Any:
        try:
            return read(cell)
        except Unrepresentable:
            return None

    return told


def lacking(read: Callable[[T], Any]) -> Callable[[T], str | None]:
    """For the column beside it."""

    def told(cell: T) -> str | None:
        try:
            read(cell)
        except Unrepresentable as error:
            return error.text
        return None

    return told


def reason(columns: Sequence[str], what: str, key: Collection[str]) -> str:
    """Why a row cannot be told, and what helps. ``columns``: those that hold such a value."""
    listed = ", ".join(columns)
    return f"{listed}: {what}, which no target's type has{_in_key(columns, key)}; {remedy(columns, key)}"


def remedy(columns: Sequence[str], key: Collection[str], keeps_texts: bool = True) -> str:
    """``keeps_texts``: the source tells its values as text."""
    if not keeps_texts:
        return "mend the rows at the source, or leave the column out, or the table"
    cast = ", ".join(f"{name}: text" for name in columns)
    text = f"copy it as text (`columns: {{cast: {{{cast}}}}}`)"
    if not set(columns).isdisjoint(key):
        return f"{text} or leave the table out"
    return f"{text}, or as NULL with its text beside it (`on_unrepresentable: set_null`), or leave the column out"


def _in_key(columns: Sequence[str], key: Collection[str]) -> str:
    return ", in the key" if not set(columns).isdisjoint(key) else ""


def unrepresentable_row(schema: TableSchema, columns: Sequence[str], what: str, keeps_texts: bool = True) -> Problem:
    """A row that a copy has met, or that a poll has."""
    return Problem(
        "CPY009",
        f"{schema.table} holds values that no target's type has",
        where=schema.table,
        found=f"{', '.join(columns)}: {what}{_in_key(columns, schema.key)}",
        allowed="times of the years 1 to 9999, finite numbers",
        do=remedy(columns, schema.key, keeps_texts),
        data="nothing of it was written",
    )
