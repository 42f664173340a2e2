"""Rows that moved without all their columns, completed from the rows that they moved away from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_cdc_provider.core.table.merge_plan import KNOWN
from airflow_cdc_provider.core.table.schema import Column, Kind, LogicalType, TableSchema
from airflow_cdc_provider.targets.exact_values import Numbers
from spark_jobs.folds.fold import ROWS
from spark_jobs.folds.lives import FoldError
from spark_jobs.folds.parents import with_parents

SCHEMA = TableSchema("t", tuple(Column(name, LogicalType(Kind.TEXT)) for name in ("id", "v", "w")), ("id",))
TARGET = {'["a"]': {"id": "a", "v": "va", "w": "wa"}, '["b"]': {"id": "b", "v": "vb", "w": None}}


def live(keys: Sequence[str]) -> tuple[Numbers, pa.Table]:
    found = [(number, TARGET[key]) for number, key in reversed(list(enumerate(keys))) if key in TARGET]
    columns = pa.schema([(name, pa.string()) for name in SCHEMA.names])
    return np.array([number for number, _ in found], np.int64), pa.Table.from_pylist([row for _, row in found], columns)


def completed(*moved: tuple[dict[str, Any], list[str] | None, str | None, bool]) -> list[dict[str, Any]]:
    folded = pa.Table.from_pylist(
        [{"known": known, "root": root, "root_may_be_missing": missing} for _, known, root, missing in moved], ROWS
    )
    columns = pa.schema([*((name, pa.string()) for name in SCHEMA.names), (KNOWN, pa.list_(pa.string()))])
    rows = pa.Table.from_pylist([{**row, KNOWN: known} for row, known, _, _ in moved], columns)
    result: list[dict[str, Any]] = with_parents(rows, folded, SCHEMA, live).to_pylist()
    return result


def test_unknown_values_are_those_of_the_row_that_it_moved_away_from() -> None:
    assert completed(
        ({"id": "x", "v": "1"}, ["id", "v"], '["a"]', False),
        ({"id": "y", "v": None}, ["id", "v"], '["a"]', False),
        ({"id": "z", "w": "2"}, ["id", "w"], '["b"]', False),
        ({"id": "other", "v": "3"}, ["id", "v"], None, False),
        ({"id": "whole", "v": "4"}, None, None, False),
    ) == [
        {"id": "x", "v": "1", "w": "wa", KNOWN: None},
        {"id": "y", "v": None, "w": "wa", KNOWN: None},
        {"id": "z", "v": "vb", "w": "2", KNOWN: None},
        {"id": "other", "v": "3", "w": None, KNOWN: ["id", "v"]},
        {"id": "whole", "v": "4", "w": None, KNOWN: None},
    ]


def test_a_missing_row_is_an_error_unless_it_may_be_missing() -> None:
    lost = {"id": "x", "v": "1"}, ["id", "v"], '["gone"]'
    assert completed((*lost, True)) == [{"id": "x", "v": "1", "w": None, KNOWN: None}]
    with pytest.raises(FoldError):
        completed((*lost, False))
