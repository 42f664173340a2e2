"""Values that the source's type has but no logical type has: infinite times, years outside 1 to 9999, NaN as a decimal.

They are never replaced silently. Outside the key the definition may allow NULL, with the text in a second column.
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
MORE_DIGITS = "a number with more digits than the type of its column"
NO_DATE = "an invalid date, such as a zero date"
OTHER_TYPE = "a value of another type than its column"
UNCHANGED = "the target is unchanged by it; splits of a copy that were read are kept if the source can read them later"


class Unrepresentable(ValueError):
    """``str()`` is the kind of the value and does not quote it. ``text``: the source's text of the value, if known."""

    def __init__(self, what: str, text: str = "") -> None:
        super().__init__(what)
        self.text = text


def none_if_unrepresentable(read: Callable[[T], Any]) -> Callable[[T], Any]:
    """For a column whose unrepresentable values are kept as text in a second column."""

    def read_or_none(cell: T) -> Any:
        try:
            return read(cell)
        except Unrepresentable:
            return None

    return read_or_none


def text_if_unrepresentable(read: Callable[[T], Any]) -> Callable[[T], str | None]:
    """For the second column."""

    def read_text(cell: T) -> str | None:
        try:
            read(cell)
        except Unrepresentable as error:
            return error.text
        return None

    return read_text


def reason(columns: Sequence[str], what: str, key: Collection[str], keeps_texts: bool = True) -> str:
    """Why a row cannot be decoded, and what to do. ``columns``: those with an unrepresentable value."""
    listed = ", ".join(columns)
    return f"{listed}: {what}, which no target's type has{_in_key(columns, key)}; {remedy(columns, key, keeps_texts)}"


def remedy(columns: Sequence[str], key: Collection[str], keeps_texts: bool = True) -> str:
    """``keeps_texts``: the source delivers its values as text."""
    if not keeps_texts:
        return "correct the rows at the source, or leave out the column or the table"
    cast = ", ".join(f"{name}: text" for name in columns)
    text = f"copy it as text (`columns: {{cast: {{{cast}}}}}`)"
    if not set(columns).isdisjoint(key):
        return f"{text} or leave out the table"
    return f"{text} or as NULL beside its text (`on_unrepresentable: set_null`), or leave out the column"


def _in_key(columns: Sequence[str], key: Collection[str]) -> str:
    return ", in the key" if not set(columns).isdisjoint(key) else ""


def unrepresentable_row(schema: TableSchema, columns: Sequence[str], what: str, keeps_texts: bool = True) -> Problem:
    """For a row that a copy or a poll has read."""
    return Problem(
        "CPY009",
        f"{schema.table} has values that no target's type has",
        where=schema.table,
        found=f"{', '.join(columns)}: {what}{_in_key(columns, schema.key)}",
        allowed="times in the years 1 to 9999, finite numbers",
        do=remedy(columns, schema.key, keeps_texts),
        data=UNCHANGED,
    )
