"""Rows that left the source: whether a resync keeps them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.jdbc_poll.source import JdbcPollSource
from airflow_cdc_provider.connectors.sources.mysql.source import MysqlSource
from airflow_cdc_provider.connectors.sources.postgres.source import PostgresSource
from airflow_cdc_provider.connectors.sources.salesforce.source import SalesforceSource
from airflow_cdc_provider.core.spec.definition import Ignorable, OnDelete, TableRule
from spark_jobs.copies.delete_guard import keeps_missing_rows
from tests.core.test_decide import table

TRUNCATES = TableRule("public.t", ignore=(Ignorable.TRUNCATE,))


def keeps(source: type[Any], rule: TableRule) -> bool:
    job: Any = SimpleNamespace(source=source.__new__(source))
    return keeps_missing_rows(job, replace(table("public.t").task, rule=rule))


@pytest.mark.parametrize("source", [PostgresSource, MysqlSource])
def test_a_row_may_have_left_by_a_truncate_that_was_ignored(source: type[Any]) -> None:
    assert keeps(source, TRUNCATES)
    assert not keeps(source, TableRule("public.t"))


@pytest.mark.parametrize("source", [JdbcPollSource, SalesforceSource])
def test_where_no_truncate_is_reported_a_missing_row_was_deleted(source: type[Any]) -> None:
    assert not keeps(source, TRUNCATES)


@pytest.mark.parametrize(
    "rule",
    [TableRule("public.t", on_delete=OnDelete.IGNORE), TableRule("public.t", ignore=(Ignorable.DELETE,))],
)
@pytest.mark.parametrize("source", [PostgresSource, JdbcPollSource])
def test_rows_whose_delete_is_ignored_stay(source: type[Any], rule: TableRule) -> None:
    assert keeps(source, rule)
