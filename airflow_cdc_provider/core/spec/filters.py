"""Row filters as SQL means them: a row is taken only if every condition is true, and NULL makes no comparison true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Scalar
from airflow_cdc_provider.core.table.schema import Kind


@dataclass(frozen=True)
class Beyond:
    """A time before all that the YAML can name, or after."""

    kind: Kind
    after: bool


@dataclass(frozen=True)
class NoDate:
    """A date that no calendar has, like 2024-00-10, with its time: as the source spells it. It lies before or after
    every other one."""

    kind: Kind
    text: str


ISO_DATE = len("2024-00-10")
Value = bool | int | float | Decimal | str | date | datetime | Beyond | NoDate


def matches(conditions: Sequence[Condition], values: Mapping[str, Value | None]) -> bool:
    """``values`` holds every column that a condition names, in its Python form; None is NULL."""
    return all(_holds(condition, values[condition.column]) for condition in conditions)


def literal(kind: Kind, given: Scalar) -> Value:
    """What the YAML gives, as a value of a column. Raises ValueError where it cannot be one.

    Binary columns have no literal; times without a zone mean UTC where the column has one.
    """
    match kind:
        case Kind.BOOLEAN:
            if isinstance(given, bool):
                return given
            raise ValueError("a truth value is needed")
        case Kind.INT16 | Kind.INT32 | Kind.INT64 | Kind.FLOAT32 | Kind.FLOAT64 | Kind.DECIMAL:
            return _number(kind, given)
        case Kind.TEXT | Kind.JSON | Kind.UUID:
            if isinstance(given, str):
                return given
            raise ValueError("text is needed; put it in quotes")
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
        case Beyond() | NoDate():
            return value.kind


def _number(kind: Kind, given: Scalar) -> Value:
    if isinstance(given, bool):
        raise ValueError("a number is needed")
    if kind in (Kind.FLOAT32, Kind.FLOAT64):
        return float(given)
    try:
        number = Decimal(str(given))
    except ArithmeticError as error:
        raise ValueError("a number is needed") from error
    if number.is_finite():
        return number
    raise ValueError("a finite number is needed")


def _text(given: Scalar) -> str:
    if isinstance(given, str):
        return given
    raise ValueError("text in ISO form is needed")


def _holds(condition: Condition, value: Value | None) -> bool:
    if condition.op is Comparison.IS_NULL:
        return value is None
    if condition.op is Comparison.IS_NOT_NULL:
        return value is not None
    if value is None:
        return False
    kind = kind_of(value)
    if condition.op in (Comparison.IN, Comparison.NOT_IN):
        listed = {_comparable(literal(kind, item)) for item in _items(condition)}
        return (_comparable(value) in listed) is (condition.op is Comparison.IN)
    (given,) = _items(condition)
    there = literal(kind, given)
    if isinstance(value, NoDate):
        return _compare(condition.op, value.text[:ISO_DATE], str(there)[:ISO_DATE])
    return _compare(condition.op, _comparable(value), _comparable(there))


def _items(condition: Condition) -> tuple[Scalar, ...]:
    assert condition.value is not None
    return condition.value if isinstance(condition.value, tuple) else (condition.value,)


def _comparable(value: Value) -> Any:
    """NaN equals itself and is above all other numbers, as in SQL."""
    match value:
        case float():
            return (True, 0.0) if value != value else (False, value)
        case date():
            return 0, value
        case Beyond():
            return 1 if value.after else -1, None
        case _:
            return value


def _compare(op: Comparison, here: Any, there: Any) -> bool:
    match op:
        case Comparison.EQUAL:
            return bool(here == there)
        case Comparison.NOT_EQUAL:
            return bool(here != there)
        case Comparison.LESS:
            return bool(here < there)
        case Comparison.LESS_OR_EQUAL:
            return bool(here <= there)
        case Comparison.GREATER:
            return bool(here > there)
        case Comparison.GREATER_OR_EQUAL:
            return bool(here >= there)
        case _:
            raise AssertionError(f"{op} is not a comparison of two values")
