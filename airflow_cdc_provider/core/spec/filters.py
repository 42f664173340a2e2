"""Row filters with the semantics of SQL: a row passes if every condition is true; no comparison with NULL is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Scalar
from airflow_cdc_provider.core.table.schema import Kind


@dataclass(frozen=True)
class OutOfRange:
    """A time before every value that the YAML can contain, or after."""

    kind: Kind
    after: bool


@dataclass(frozen=True)
class InvalidDate:
    """A date that does not exist, like 2024-00-10, with its time, as the source formats it. It equals no other date."""

    kind: Kind
    text: str


ISO_DATE = len("2024-00-10")
Value = bool | int | float | Decimal | str | date | datetime | OutOfRange | InvalidDate


def matches(conditions: Sequence[Condition], values: Mapping[str, Value | None]) -> bool:
    """``values`` contains the Python value of every column that a condition names; None is NULL."""
    return all(_is_true(condition, values[condition.column]) for condition in conditions)


def literal(kind: Kind, given: Scalar) -> Value:
    """A value of the YAML as a value of a column of type ``kind``. Raises ValueError if the conversion is impossible.

    Binary columns have no literals. A time without a zone is UTC if the column has a time zone.
    """
    match kind:
        case Kind.BOOLEAN:
            if isinstance(given, bool):
                return given
            raise ValueError("true or false is required")
        case Kind.INT16 | Kind.INT32 | Kind.INT64 | Kind.FLOAT32 | Kind.FLOAT64 | Kind.DECIMAL:
            return _number(kind, given)
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            if isinstance(given, str):
                return given
            raise ValueError("text is required; put it in quotes")
        case Kind.DATE:
            return date.fromisoformat(_text(given))
        case Kind.TIMESTAMP:
            moment = datetime.fromisoformat(_text(given))
            if moment.tzinfo is None:
                return moment
            raise ValueError("the column has no time zone")
        case Kind.TIMESTAMPTZ:
            moment = datetime.fromisoformat(_text(given))
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        case Kind.BYTES:
            raise ValueError("binary values cannot be compared")


def kind_of(value: Value) -> Kind:
    """The kind whose literals compare with ``value``."""
    match value:
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INT64
        case float():
            return Kind.FLOAT64
        case Decimal():
            return Kind.DECIMAL
        case datetime():
            return Kind.TIMESTAMPTZ if value.tzinfo else Kind.TIMESTAMP
        case date():
            return Kind.DATE
        case str():
            return Kind.TEXT
        case OutOfRange() | InvalidDate():
            return value.kind


def _number(kind: Kind, given: Scalar) -> Value:
    if isinstance(given, bool):
        raise ValueError("a number is required")
    if kind in (Kind.FLOAT32, Kind.FLOAT64):
        return float(given)
    try:
        number = Decimal(str(given))
    except ArithmeticError as error:
        raise ValueError("a number is required") from error
    if number.is_finite():
        return number
    raise ValueError("a finite number is required")


def _text(given: Scalar) -> str:
    if isinstance(given, str):
        return given
    raise ValueError("text in ISO 8601 format is required")


def _is_true(condition: Condition, value: Value | None) -> bool:
    if condition.op is Comparison.IS_NULL:
        return value is None
    if condition.op is Comparison.IS_NOT_NULL:
        return value is not None
    if value is None:
        return False
    kind = kind_of(value)
    if condition.op in (Comparison.IN, Comparison.NOT_IN):
        literals = {_comparable(literal(kind, item)) for item in _items(condition)}
        return (_comparable(value) in literals) is (condition.op is Comparison.IN)
    (item,) = _items(condition)
    other = literal(kind, item)
    if isinstance(value, InvalidDate):
        return _compare(condition.op, value.text[:ISO_DATE], str(other)[:ISO_DATE])
    return _compare(condition.op, _comparable(value), _comparable(other))


def _items(condition: Condition) -> tuple[Scalar, ...]:
    assert condition.value is not None
    return condition.value if isinstance(condition.value, tuple) else (condition.value,)


def _comparable(value: Value) -> Any:
    """A sortable form. As in PostgreSQL, NaN equals itself and is greater than all other numbers."""
    match value:
        case float():
            return (True, 0.0) if value != value else (False, value)
        case date():
            return 0, value
        case OutOfRange():
            return 1 if value.after else -1, None
        case _:
            return value


def _compare(op: Comparison, left: Any, right: Any) -> bool:
    match op:
        case Comparison.EQUAL:
            return bool(left == right)
        case Comparison.NOT_EQUAL:
            return bool(left != right)
        case Comparison.LESS:
            return bool(left < right)
        case Comparison.LESS_OR_EQUAL:
            return bool(left <= right)
        case Comparison.GREATER:
            return bool(left > right)
        case Comparison.GREATER_OR_EQUAL:
            return bool(left >= right)
        case _:
            raise AssertionError(f"{op} is not a comparison of two values")
