"""Every case, folded and merged: the rows must equal those of the source. One batch contains all cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import OnDelete
from tests.spark.contract.double_cases import DOUBLE, DOUBLE_CASES, DoubleKeyChanges, row
from tests.spark.contract.fold_cases import (
    KEYED,
    KEYLESS,
    KEYLESS_CASES,
    NO_NUMBERS,
    PARTIAL,
    WHOLE,
    ZEROS,
    Case,
    KeyedChanges,
    KeylessChanges,
)
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import KITS
from tests.spark.contract.unordered_cases import UNORDERED, UNORDERED_CASES, WINDOWS, UnorderedChanges

pytestmark = pytest.mark.jvm

BLOCK = 100
"""Every case has its own hundred keys."""

KEYED_CASES = WHOLE | PARTIAL
DOUBLE_VARIANTS = list(product(DOUBLE_CASES, ("by images", "by row ids")))
Rows = Mapping[Any, Sequence[tuple[Any, ...]]]


@pytest.fixture(
    scope="module",
    params=product(sorted(KITS), (OnDelete.HARD, OnDelete.SOFT)),
    ids=lambda parameter: "-".join(parameter),
)
def keyed(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rows]:
    """The final live rows of a table, by case."""
    kind, on_delete = request.param
    folder = tmp_path_factory.mktemp("keyed")
    with KITS[kind](spark, folder, request.getfixturevalue) as kit:
        yield keyed_cases(KitTable(kit, folder, KEYED, on_delete))


def keyed_cases(table: KitTable) -> Rows:
    bases = {name: BLOCK * number for number, name in enumerate(KEYED_CASES)}
    table.copy(
        [KeyedChanges(table, base).row(*values) for name, base in bases.items() for values in KEYED_CASES[name].before]
    )
    for cases in (WHOLE, PARTIAL):
        delivered = [
            change for name, case in cases.items() for change in case.changes(KeyedChanges(table, bases[name]))
        ]
        result = table.apply(delivered)
        assert result.outcome is Outcome.DONE, result.problem
    soft = table.rule.on_delete is OnDelete.SOFT
    found = table.rows(*(["_cdc_deleted"] if soft else []))
    assert table.row_count() == len(found)
    live = [row[:3] for row in found if not (soft and row[3])]
    return {
        name: sorted((key - base, *rest) for key, *rest in live if base <= key < base + BLOCK)
        for name, base in bases.items()
    }


@pytest.mark.parametrize("case", KEYED_CASES)
def test_keyed_rows_equal_the_source_after_each_case(keyed: Rows, case: str) -> None:
    assert keyed[case] == KEYED_CASES[case].after


@pytest.fixture(scope="module", params=sorted(KITS))
def keyless(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rows]:
    """The final rows of a table without key, by case."""
    folder = tmp_path_factory.mktemp("bare")
    with KITS[request.param](spark, folder, request.getfixturevalue) as kit:
        numbers = (NO_NUMBERS if kit.has_odd_numbers else {}) | (ZEROS if kit.keeps_zeros_apart else {})
        yield keyless_cases(KitTable(kit, folder, KEYLESS), KEYLESS_CASES | numbers)


def keyless_cases(table: KitTable, cases: Mapping[str, Case]) -> Rows:
    writers = {name: KeylessChanges(table, number) for number, name in enumerate(cases)}
    table.copy([writers[name].row(*values) for name, case in cases.items() for values in case.before])
    result = table.apply([change for name, case in cases.items() for change in case.changes(writers[name])])
    assert result.outcome is Outcome.DONE, result.problem
    found = table.rows()
    assert table.row_count() == len(found)
    return {name: [row[1:] for row in found if row[0] == writer.case] for name, writer in writers.items()}


@pytest.mark.parametrize("case", [*KEYLESS_CASES, *NO_NUMBERS, *ZEROS])
def test_rows_without_key_equal_the_source_after_each_case(keyless: Rows, case: str) -> None:
    if case not in keyless:
        pytest.skip("the database, or its stand-in, has no such numbers; what it does instead is a test of its own")
    assert [as_text(row) for row in keyless[case]] == [
        as_text(row) for row in (KEYLESS_CASES | NO_NUMBERS | ZEROS)[case].after
    ]


@pytest.fixture(scope="module", params=sorted(KITS))
def double(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rows]:
    """The final rows of a table in which two rows may hold one key for a moment, by case and variant."""
    folder = tmp_path_factory.mktemp("double")
    with KITS[request.param](spark, folder, request.getfixturevalue) as kit:
        yield double_cases(KitTable(kit, folder, DOUBLE))


def double_cases(table: KitTable) -> Rows:
    bases = {delivered: number * BLOCK for number, delivered in enumerate(DOUBLE_VARIANTS)}
    table.copy([row(bases[one] + key, v) for one in DOUBLE_VARIANTS for key, v in DOUBLE_CASES[one[0]].before])
    transactions = []
    for case, way in DOUBLE_VARIANTS:
        delivered = DoubleKeyChanges(table, by_id=way == "by row ids")
        transactions.append(delivered.transaction(*DOUBLE_CASES[case].changes(delivered, bases[case, way])))
    result = table.apply(transactions)
    assert result.outcome is Outcome.DONE, result.problem
    found = table.rows()
    assert table.row_count() == len(found)
    return {one: [(key - base, v) for key, v in found if base <= key < base + BLOCK] for one, base in bases.items()}


@pytest.mark.parametrize(("case", "way"), DOUBLE_VARIANTS)
def test_of_two_rows_with_one_key_the_remaining_one_keeps_it(double: Rows, case: str, way: str) -> None:
    assert double[case, way] == DOUBLE_CASES[case].after


@pytest.fixture(scope="module", params=sorted(KITS))
def unordered(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rows]:
    """The final rows of a table whose records arrive out of order, by case."""
    folder = tmp_path_factory.mktemp("unordered")
    with KITS[request.param](spark, folder, request.getfixturevalue) as kit:
        yield unordered_cases(KitTable(kit, folder, UNORDERED))


def unordered_cases(table: KitTable) -> Rows:
    writers = {name: UnorderedChanges(table, number * BLOCK) for number, name in enumerate(UNORDERED_CASES)}
    table.copy([writers[name].row(*values) for name, case in UNORDERED_CASES.items() for values in case.before])
    sent = [case.windows(writers[name]) for name, case in UNORDERED_CASES.items()]
    for window in range(WINDOWS):
        result = table.apply([change for windows in sent for change in windows[window]])
        assert result.outcome is Outcome.DONE, result.problem
    found = table.rows()
    assert table.row_count() == len(found)
    return {
        name: [(key - writer.base, v) for key, v in found if writer.base <= key < writer.base + BLOCK]
        for name, writer in writers.items()
    }


@pytest.mark.parametrize("case", UNORDERED_CASES)
def test_the_newest_change_of_a_key_wins_in_any_order(unordered: Rows, case: str) -> None:
    assert unordered[case] == UNORDERED_CASES[case].after


def as_text(row: tuple[Any, ...]) -> tuple[Any, str]:
    """Zeros differ by their sign, and NaN is like NaN."""
    return row[0], str(row[1]).lower()
