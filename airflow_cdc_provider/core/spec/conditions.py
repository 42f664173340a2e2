"""Conditions on columns of the source, as in SQL's WHERE."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_cdc_provider.core.spec.fields import Scalar, doc


class Comparison(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="
    IN = "in"
    NOT_IN = "not in"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"


@dataclass(frozen=True)
class Condition:
    column: str = doc("Source column.")
    op: Comparison = doc("How the column is compared; comparisons with NULL are not true, as in SQL.")
    value: Scalar | tuple[Scalar, ...] | None = doc(
        "Value, a list for `in` and `not in`, absent for `is null` and `is not null`.", None
    )
