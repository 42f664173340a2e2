"""Every obstacle at once, each with the statement that cures it."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_cdc_provider.connectors.postgres.client import Client
from airflow_cdc_provider.connectors.postgres.options import PostgresOptions
from airflow_cdc_provider.core.errors import Problem
from airflow_cdc_provider.core.steps import TableTask


def find_problems(client: Client, options: PostgresOptions, tables: Sequence[TableTask]) -> list[Problem]:
    return []
