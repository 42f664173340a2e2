"""Definitions of tables that share a target table: which are valid, and what is wrong with the others."""

from __future__ import annotations

import pytest

from tests.provider.shop_yaml import FOLDERS, GOOD, load, problems

DATABASE = "{type: postgres, connection: warehouse, schema: shop}"


def shards(tables: str, target: str = DATABASE) -> str:
    """The valid file with these tables, one a line."""
    return GOOD.replace(FOLDERS, target).replace("  - source: public.orders\n", tables)


MYSQL = DATABASE.replace("postgres", "mysql")
ICEBERG = FOLDERS.replace("delta", "iceberg")
SPANNER = "{type: spanner, connection: warehouse, instance: i, database: d}"
PATTERN = '  - {source: shop_*.orders, target: orders, shard_column: region, shard_value: "{schema}"}\n'
BY_NAME = (
    "  - {source: eu.orders, target: orders, shard_column: region}\n"
    "  - {source: us.orders, target: orders, shard_column: region}\n"
)


@pytest.mark.parametrize("tables", [PATTERN, BY_NAME], ids=["a pattern", "names"])
@pytest.mark.parametrize("target", [FOLDERS, ICEBERG, DATABASE, MYSQL], ids=["delta", "iceberg", "postgres", "mysql"])
def test_source_tables_may_have_one_target_table(tables: str, target: str) -> None:
    definition = load(shards(tables, target))
    assert {rule.target for rule in definition.tables} == {"orders"}
    assert {rule.shard_column for rule in definition.tables} == {"region"}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (shards(PATTERN, SPANNER), "DEF089"),
        (shards(PATTERN.replace(", shard_column: region", "")), "DEF049 DEF088"),
        (shards(BY_NAME.replace("shard_column", "shard_value")), "DEF015 DEF088 DEF088"),
        (shards(PATTERN.replace("{schema}", "{owner}")), "DEF013"),
        (shards(PATTERN.replace("region", "_cdc_region")), "DEF013"),
    ],
)
def test_what_does_not_go_with_a_shared_table_is_a_problem(text: str, code: str) -> None:
    found = problems(text)
    assert " ".join(sorted(problem.code for problem in found)) == code, [str(problem) for problem in found]


def test_a_target_that_has_no_shared_tables_names_those_that_have() -> None:
    (found,) = problems(shards(PATTERN, SPANNER))
    assert "delta, iceberg, mysql, postgres" in found.allowed
