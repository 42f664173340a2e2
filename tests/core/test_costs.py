"""What a copy costs, by day."""

from __future__ import annotations

from airflow_cdc_provider.core.table.costs import NOTHING, Cost, total, with_cost

ONE = Cost(1.5, 10, 200, {"bytes_billed": 7})


def test_costs_of_a_day_add_up_by_unit() -> None:
    costs = with_cost(with_cost({}, ONE, "2026-11-27T01:00:00+00:00"), ONE, "2026-11-27T23:00:00+00:00")
    assert costs == {"2026-11-27": Cost(3.0, 20, 400, {"bytes_billed": 14})}


def test_a_day_is_forgotten_after_thirty() -> None:
    costs = with_cost({}, ONE, "2026-10-27T12:00:00+00:00")
    costs = with_cost(costs, ONE, "2026-10-28T12:00:00+00:00")
    costs = with_cost(costs, ONE, "2026-11-27T12:00:00+00:00")
    assert sorted(costs) == ["2026-10-28", "2026-11-27"]
    assert total(costs.values()) == ONE + ONE


def test_a_run_that_cost_nothing_takes_no_space() -> None:
    assert with_cost({}, NOTHING, "2026-11-27T12:00:00+00:00") == {}
    assert total([]) == NOTHING
