"""Every query that the connector sends is T-SQL, as far as a parser can tell."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from airflow_cdc_provider.connectors.sources.sqlserver import queries
from airflow_cdc_provider.connectors.sources.sqlserver.capture_instances import Coverage, Segment, cover, within
from airflow_cdc_provider.connectors.sources.sqlserver.catalog import CaptureInstance
from airflow_cdc_provider.connectors.sources.sqlserver.positions import key_after, key_before, order_key
from airflow_cdc_provider.connectors.sources.sqlserver.types import SqlColumn
from tests.connectors.sqlserver_database import Shop
from tests.connectors.test_sqlserver_types import COLUMNS
from tests.simulators.sqlserver.tables import Col

ODD = "o]d'd %s"


def test_every_query_is_parsed_as_t_sql_and_reads_only(tmp_path: Path) -> None:
    shop = Shop(tmp_path, schemas=("dbo", "it's"))
    wide = [Col(name, kind) for name, kind in COLUMNS.items()]
    table = shop.table("dbo.wide", Col("id", "int", False), Col(ODD, "int"), *wide)
    task = shop.task("dbo.wide")
    shop.insert(table, {"id": 1, ODD: 2})
    shop.source.check([task])
    shop.window(task)
    shop.copied(task)
    shop.source.wait_for_capture()
    shop.source.retained_log(shop.position)
    shop.source.identities(["dbo.wide"])
    assert len(set(shop.client.queries)) > 20
    for query in set(shop.client.queries):
        (parsed,) = sqlglot.parse(query, read="tsql")
        assert isinstance(parsed, exp.Query) and not parsed.find(exp.Command), query
        assert not parsed.find(exp.Placeholder, exp.Parameter), "values are literals"


def test_names_and_values_cannot_end_their_quotes() -> None:
    query = queries.rows("[dbo].[t]", [SqlColumn(1, ODD, "int")], ODD, 1, None)
    (column,) = {column.name for column in sqlglot.parse_one(query, read="tsql").find_all(exp.Column)}
    assert column == ODD
    assert "N'it''s'" in queries.tables(["it's"])


def instance(number: int, start: int | None) -> CaptureInstance:
    return CaptureInstance(1, number, f"i{number}", start, "", ())


ONE, TWO, NEW = instance(1, 10), instance(2, 50), instance(3, None)


@pytest.mark.parametrize(
    ("instances", "after", "upto", "expected"),
    [
        ([], 20, 30, Coverage((), 31)),
        ([NEW], 20, 30, Coverage((), 31)),
        ([ONE], 20, 30, Coverage((Segment(ONE, 20, 30),))),
        ([ONE], 9, 30, Coverage((Segment(ONE, 9, 30),))),
        ([ONE], 8, 30, Coverage((Segment(ONE, 9, 30),), 10)),
        ([ONE], 2, 5, Coverage((), 6)),
        ([ONE, TWO], 20, 30, Coverage((Segment(ONE, 20, 30),))),
        ([ONE, TWO], 20, 60, Coverage((Segment(ONE, 20, 49), Segment(TWO, 49, 60)))),
        ([ONE, TWO], 49, 60, Coverage((Segment(TWO, 49, 60),))),
        ([ONE, TWO, NEW], 55, 60, Coverage((Segment(TWO, 55, 60),))),
        ([instance(1, 50), TWO], 20, 60, Coverage((Segment(TWO, 49, 60),), 50)),
        ([instance(1, 50), TWO], 60, 70, Coverage((Segment(TWO, 60, 70),))),
    ],
)
def test_each_part_of_a_window_is_read_from_the_instance_that_has_it(
    instances: list[CaptureInstance], after: int, upto: int, expected: Coverage
) -> None:
    assert cover(instances, after, upto) == expected
    assert within(expected.segments, after, upto) == list(expected.segments)


def test_order_keys_compare_like_the_clustered_index_of_a_change_table() -> None:
    positions = [
        (1, 1, 9, 1),
        (1, 2, 3, 2),
        (1, 2, 3, 4),
        (1, 2, 4, 1),
        (1, 300, 1, 2),
        (2, 0, 0, 1),
        (1 << 79, 1, 1, 1),
    ]
    keys = [order_key(7, *one) + "00" for one in positions]
    assert keys == sorted(keys) and {len(key) for key in keys} == {60}
    assert key_before(7, 1) < keys[0] and keys[4] < key_after(7, 1) < key_before(7, 2) < keys[5]
