"""A Salesforce org, somebody who writes to it, and replicators of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.change_events import Rules
from tests.model.seeds import seed
from tests.spark.pipelines.salesforce.pipeline import (
    LATER_S,
    SalesforcePipeline,
    Writer,
    salesforce_pipeline,
)

OVERFLOW = 100
"""From this number of changed fields on, a transaction is an overflow."""


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.05, rules=Rules(overflow=OVERFLOW)) as org:
        yield org


@pytest.fixture
def writer(org: SalesforceOrg) -> Writer:
    writer = Writer(org, f"{seed()}")
    writer.fill(40)
    return writer


@pytest.fixture
def copied(
    org: SalesforceOrg, writer: Writer, tmp_path: Path, spark: SparkSession
) -> Callable[..., SalesforcePipeline]:
    """A replicator of these tables, copied once."""

    def make(*tables: str) -> SalesforcePipeline:
        made = salesforce_pipeline(org, tmp_path, spark, *tables)
        made.run_successfully()
        org.clock.advance(LATER_S)
        return made

    return make
