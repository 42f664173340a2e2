"""Row filters decide as SQL does."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from airflow_cdc_provider.core.spec.definition import Comparison, Condition, Scalar
from airflow_cdc_provider.core.spec.filters import Value, literal, matches
from airflow_cdc_provider.core.table.schema import Kind

C = Comparison


@pytest.mark.parametrize(
    ("value", "op", "given", "taken"),
    [
        (1, C.EQUAL, 1, True),
        (1, C.EQUAL, 1.0, True),
        (2, C.LESS, 2.5, True),
        (9223372036854775807, C.GREATER, 9223372036854775806, True),
        (Decimal("1.50"), C.EQUAL, 1.5, True),
        (Decimal("0.10"), C.GREATER, 0.1, False),
        (Decimal("0.1"), C.IN, (0.1, 7), True),
        (0.5, C.NOT_EQUAL, 0.5, False),
        (float("nan"), C.GREATER, 1e308, True),
        (float("nan"), C.EQUAL, 1.0, False),
        ("a", C.LESS, "b", True),
        ("Z", C.LESS, "a", True),
        ("x", C.NOT_IN, ("a", "b"), True),
        (True, C.EQUAL, True, True),
        (True, C.NOT_EQUAL, True, False),
        (date(2024, 1, 2), C.GREATER_OR_EQUAL, "2024-01-02", True),
        (datetime(2024, 1, 2, 3), C.LESS_OR_EQUAL, "2024-01-02T03:00:00", True),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), C.EQUAL, "2024-01-02T05:00:00+02:00", True),
        (datetime(2024, 1, 2, 3, tzinfo=UTC), C.EQUAL, "2024-01-02T03:00:00", True),
    ],
)
def test_a_comparison_is_that_of_the_type(
    value: Value, op: Comparison, given: Scalar | tuple[Scalar, ...], taken: bool
) -> None:
    assert matches([Condition("c", op, given)], {"c": value}) is taken


@pytest.mark.parametrize("op", list(Comparison))
def test_a_comparison_with_null_is_never_true(op: Comparison) -> None:
    given = (1, 2) if op in (C.IN, C.NOT_IN) else None if op in (C.IS_NULL, C.IS_NOT_NULL) else 1
    assert matches([Condition("c", op, given)], {"c": None}) is (op is C.IS_NULL)


def test_all_conditions_must_be_true() -> None:
    conditions = [Condition("a", C.GREATER, 1), Condition("b", C.IS_NOT_NULL)]
    assert matches(conditions, {"a": 2, "b": "x"})
    assert not matches(conditions, {"a": 2, "b": None})
    assert not matches(conditions, {"a": 1, "b": "x"})
    assert matches([], {})


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Kind.BOOLEAN, "true"),
        (Kind.BOOLEAN, 1),
        (Kind.INT32, "one"),
        (Kind.INT32, True),
        (Kind.DECIMAL, float("inf")),
        (Kind.TEXT, 1),
        (Kind.DATE, "yesterday"),
        (Kind.DATE, 20240101),
        (Kind.TIMESTAMP, "2024-01-01T00:00:00Z"),
        (Kind.BYTES, "AP8="),
    ],
)
def test_a_literal_that_is_no_value_of_the_type_is_refused(kind: Kind, given: Scalar) -> None:
    with pytest.raises(ValueError):
        literal(kind, given)
