"""The rows of a query in their order. Text compares without case, ids with case; null is less than any value."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

from airflow_cdc_provider.sandbox.salesforce.clock import milliseconds, moment_text
from airflow_cdc_provider.sandbox.salesforce.errors import ApiError, no_such_field
from airflow_cdc_provider.sandbox.salesforce.fields import Field
from airflow_cdc_provider.sandbox.salesforce.ids import full
from airflow_cdc_provider.sandbox.salesforce.objects import ObjectType, Row
from airflow_cdc_provider.sandbox.salesforce.soql.parse import (
    Comparison,
    Condition,
    Literal,
    Ordering,
    Query,
)
from airflow_cdc_provider.sandbox.salesforce.storage import Table
from airflow_cdc_provider.sandbox.salesforce.users import Access, User

Test = Callable[[Row], bool]
Get = Callable[[Row], Any]
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
NUMBERS = ("int", "double", "currency", "percent")
EXACT = ("id", "reference", "boolean", "date", "datetime", "time", *NUMBERS)


def find_rows(query: Query, table: Table, user: User, everything: bool, now: str) -> list[Row]:
    """Raises ApiError INVALID_FIELD for hidden fields. ``everything``: with deleted and archived rows."""
    known = {field.name.lower(): field for field in user.fields(table.type)}
    rows = list(table.visible(everything))
    if user.access_to(table.type.name) is not Access.ALL:
        rows = list(filter(user.sees(table.type), rows))
    if query.where is not None:
        rows = list(filter(_test(query.where, table.type, known, now), rows))
    for ordering in reversed(query.orderings):
        rows = _sorted(rows, ordering, table.type, known, now)
    end = None if query.limit is None else query.offset + query.limit
    return rows[query.offset : end]


def named_fields(query: Query, object_type: ObjectType, user: User) -> list[Field]:
    """The fields of the SELECT list. Raises ApiError INVALID_FIELD, also for hidden fields."""
    known = {field.name.lower(): field for field in user.fields(object_type)}
    return [_field(name, object_type, known) for name in query.fields]


def test_of(condition: Condition, object_type: ObjectType, now: str) -> Test:
    """A predicate for rows of the object, independent of a user. Raises ApiError INVALID_FIELD."""
    return _test(condition, object_type, dict(object_type.by_lower_name), now)


def fields_of(condition: Condition) -> set[str]:
    """The names of the fields in the condition."""
    if isinstance(condition, Comparison):
        return {condition.field}
    return {name for part in condition.parts for name in fields_of(part)}


def _field(name: str, object_type: ObjectType, known: dict[str, Field]) -> Field:
    field = known.get(name.lower())
    if field is None:
        raise no_such_field(name, object_type.name)
    return field


def _test(condition: Condition, object_type: ObjectType, known: dict[str, Field], now: str) -> Test:
    if isinstance(condition, Comparison):
        return _comparison(condition, object_type, known, now)
    tests = [_test(part, object_type, known, now) for part in condition.parts]
    if condition.operator == "NOT":
        (only,) = tests
        return lambda row: not only(row)
    if condition.operator == "AND":
        return lambda row: all(test(row) for test in tests)
    return lambda row: any(test(row) for test in tests)


def _comparison(one: Comparison, object_type: ObjectType, known: dict[str, Field], now: str) -> Test:
    field = _field(one.field, object_type, known)
    if not field.filterable:
        raise ApiError(400, "INVALID_FIELD", f"field '{field.name}' can not be filtered in a query call", [field.name])
    get = _getter(field, object_type, now)
    values = [_value(field, literal) for literal in one.values]
    folded: Get = get if field.kind in EXACT else (lambda row: _fold(get(row)))
    match one.operator:
        case "=":
            return lambda row, value=values[0]: folded(row) == value  # type: ignore[misc]
        case "!=":
            return lambda row, value=values[0]: folded(row) != value  # type: ignore[misc]
        case "IN":
            return lambda row, among=frozenset(values): folded(row) in among  # type: ignore[misc]
        case "NOT IN":
            return lambda row, among=frozenset(values): folded(row) not in among  # type: ignore[misc]
        case "LIKE":
            pattern = _like(one.values[0].text)
            return lambda row: get(row) is not None and pattern.fullmatch(get(row)) is not None
        case "INCLUDES" | "EXCLUDES":
            wanted = [set(str(value).split(";")) for value in values]
            includes = one.operator == "INCLUDES"
            return lambda row: any(some <= set((folded(row) or "").split(";")) for some in wanted) is includes
        case sign:
            compare = SIGNS[sign]
            return lambda row, value=values[0]: (found := folded(row)) is not None and compare(found, value)  # type: ignore[misc]


def _getter(field: Field, object_type: ObjectType, now: str) -> Get:
    if field.formula:
        return lambda row: object_type.values(row, now)[field.name]
    return operator.itemgetter(object_type.slots[field.name])


def _value(field: Field, literal: Literal) -> Any:
    """The literal as a stored value. Raises ApiError INVALID_FIELD if its type is not that of the field."""
    if literal.kind == "null":
        return False if field.kind == "boolean" else None
    wanted = {"boolean": "boolean", "date": "date", "datetime": "moment"} | dict.fromkeys(NUMBERS, "number")
    if literal.kind != wanted.get(field.kind, "string"):
        quoted = " and should not be enclosed in quotes" if literal.kind == "string" else ""
        message = f"value of filter criterion for field '{field.name}' must be of type {field.kind}{quoted}"
        raise ApiError(400, "INVALID_FIELD", message, [field.name])
    if field.kind == "datetime":
        return moment_text(milliseconds(literal.text))
    if field.kind in ("id", "reference"):
        return full(literal.text)
    if field.kind in NUMBERS:
        return float(literal.text)
    if field.kind == "boolean":
        return literal.text == "true"
    return literal.text if field.kind in EXACT else _fold(literal.text)


def _fold(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value


def _like(text: str) -> re.Pattern[str]:
    parts = re.split(r"(\\?[%_])", text)
    signs = {"%": ".*", "_": "."}
    return re.compile("".join(signs.get(part, re.escape(part.removeprefix("\\"))) for part in parts), re.I | re.S)


def _sorted(
    rows: Iterable[Row], ordering: Ordering, object_type: ObjectType, known: dict[str, Field], now: str
) -> list[Row]:
    field = _field(ordering.field, object_type, known)
    if not field.filterable:
        message = f"field '{field.name}' can not be sorted in a query call"
        raise ApiError(400, "INVALID_FIELD", message, [field.name])
    get = _getter(field, object_type, now)
    filled: list[Row] = []
    empty: list[Row] = []
    for row in rows:
        (empty if get(row) is None else filled).append(row)
    key: Get = get if field.kind in EXACT else (lambda row: _fold(get(row)))
    filled.sort(key=key, reverse=ordering.descending)
    return filled + empty if ordering.nulls_last else empty + filled
