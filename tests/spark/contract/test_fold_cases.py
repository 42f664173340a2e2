"""The log folded and merged, case by case, as the source would hold the rows. One batch holds all cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.spec.definition import OnDelete
from tests.spark.contract.double_cases import DOUBLE, DOUBLE_CASES, Told, row
from tests.spark.contract.fold_cases import BARE, KEYED, KEYLESS, ODD_NUMBERS, PARTIAL, WHOLE, BareTeller, Case, Teller
from tests.spark.contract.kit_table import KitTable
from tests.spark.contract.kits import KITS
from tests.spark.contract.unordered_cases import UNORDERED, UNORDERED_CASES, WINDOWS, Sender

pytestmark = pytest.mark.jvm

BLOCK = 100
"""Every case has its own hundred keys."""

KEYED_CASES = WHOLE | PARTIAL
TOLD = list(product(DOUBLE_CASES, ("by images", "by row ids")))
Left = Mapping[Any, Sequence[tuple[Any, ...]]]


@pytest.fixture(
    scope="module",
    params=product(sorted(KITS), (OnDelete.HARD, OnDelete.SOFT)),
    ids=lambda parameter: "-".join(parameter),
)
def keyed(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Left]:
    """The live rows that a table holds in the end, by case."""
    kind, on_delete = request.param
    folder = tmp_path_factory.mktemp("keyed")
    with KITS[kind](spark, folder, request.getfixturevalue) as kit:
        yield keyed_cases(KitTable(kit, folder, KEYED, on_delete))


def keyed_cases(table: KitTable) -> Left:
    bases = {name: BLOCK * number for number, name in enumerate(KEYED_CASES)}
    table.copy([Teller(table, base).row(*values) for name, base in bases.items() for values in KEYED_CASES[name].held])
    for cases in (WHOLE, PARTIAL):
        told = [change for name, case in cases.items() for change in case.changes(Teller(table, bases[name]))]
        result = table.apply(told)
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
def test_keyed_rows_end_as_the_source_holds_them(keyed: Left, case: str) -> None:
    assert keyed[case] == KEYED_CASES[case].left


@pytest.fixture(scope="module", params=sorted(KITS))
def bare(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Left]:
    """The rows that a table without key holds in the end, by case."""
    folder = tmp_path_factory.mktemp("bare")
    with KITS[request.param](spark, folder, request.getfixturevalue) as kit:
        yield bare_cases(KitTable(kit, folder, KEYLESS), BARE | (ODD_NUMBERS if kit.knows_odd_numbers else {}))


def bare_cases(table: KitTable, cases: Mapping[str, Case]) -> Left:
    tellers = {name: BareTeller(table, number) for number, name in enumerate(cases)}
    table.copy([tellers[name].row(*values) for name, case in cases.items() for values in case.held])
    result = table.apply([change for name, case in cases.items() for change in case.changes(tellers[name])])
    assert result.outcome is Outcome.DONE, result.problem
    found = table.rows()
    assert table.row_count() == len(found)
    return {name: [row[1:] for row in found if row[0] == teller.case] for name, teller in tellers.items()}


@pytest.mark.parametrize("case", [*BARE, *ODD_NUMBERS])
def test_rows_without_key_end_as_often_as_the_source_holds_them(bare: Left, case: str) -> None:
    if case not in bare:
        pytest.skip("the database has no such numbers; what it does instead is a test of its own")
    assert [as_text(row) for row in bare[case]] == [as_text(row) for row in (BARE | ODD_NUMBERS)[case].left]


@pytest.fixture(scope="module", params=sorted(KITS))
def double(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Left]:
    """The rows that a table holds in the end whose keys two rows may hold for a moment, by case and way of telling."""
    folder = tmp_path_factory.mktemp("double")
    with KITS[request.param](spark, folder, request.getfixturevalue) as kit:
        yield double_cases(KitTable(kit, folder, DOUBLE))


def double_cases(table: KitTable) -> Left:
    based = {told: number * BLOCK for number, told in enumerate(TOLD)}
    table.copy([row(based[one] + key, v) for one in TOLD for key, v in DOUBLE_CASES[one[0]].held])
    transactions = []
    for case, way in TOLD:
        told = Told(table, by_id=way == "by row ids")
        transactions.append(told.transaction(*DOUBLE_CASES[case].changes(told, based[case, way])))
    result = table.apply(transactions)
    assert result.outcome is Outcome.DONE, result.problem
    found = table.rows()
    assert table.row_count() == len(found)
    return {one: [(key - base, v) for key, v in found if base <= key < base + BLOCK] for one, base in based.items()}


@pytest.mark.parametrize(("case", "way"), TOLD)
def test_of_two_rows_with_one_key_the_one_that_stays_holds_it(double: Left, case: str, way: str) -> None:
    assert double[case, way] == DOUBLE_CASES[case].left


@pytest.fixture(scope="module", params=sorted(KITS))
def unordered(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Left]:
    """The rows that a table holds in the end whose records come in no order, by case."""
    folder = tmp_path_factory.mktemp("unordered")
    with KITS[request.param](spark, folder, request.getfixturevalue) as kit:
        yield unordered_cases(KitTable(kit, folder, UNORDERED))


def unordered_cases(table: KitTable) -> Left:
    senders = {name: Sender(table, number * BLOCK) for number, name in enumerate(UNORDERED_CASES)}
    table.copy([senders[name].row(*values) for name, case in UNORDERED_CASES.items() for values in case.held])
    sent = [case.windows(senders[name]) for name, case in UNORDERED_CASES.items()]
    for window in range(WINDOWS):
        result = table.apply([change for windows in sent for change in windows[window]])
        assert result.outcome is Outcome.DONE, result.problem
    found = table.rows()
    assert table.row_count() == len(found)
    return {
        name: [(key - sender.base, v) for key, v in found if sender.base <= key < sender.base + BLOCK]
        for name, sender in senders.items()
    }


@pytest.mark.parametrize("case", UNORDERED_CASES)
def test_the_newest_news_of_a_key_wins_whenever_it_comes(unordered: Left, case: str) -> None:
    assert unordered[case] == UNORDERED_CASES[case].left


def as_text(row: tuple[Any, ...]) -> tuple[Any, str]:
    """Zeros differ by their sign, and NaN is like NaN."""
    return row[0], str(row[1]).lower()
