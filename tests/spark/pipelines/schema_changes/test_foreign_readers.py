"""Delta tables whose columns were renamed, widened and dropped in place, as other libraries read them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, OnDrop, SchemaPolicy
from airflow_cdc_provider.core.table.reported_changes import TableChange
from tests.spark.pipelines.schema_changes.decided import DecidedPipeline, decided_pipeline
from tests.spark.pipelines.schema_changes.reported.databases import INSERT
from tests.spark.pipelines.schema_changes.statements import SAME
from tests.spark.targets_of_kinds import FEATURES
from tests.spark.test_foreign_readers import READERS

pytestmark = [pytest.mark.jvm, pytest.mark.server, pytest.mark.nightly]

MAPPED, WIDENED = {"deltalake", "DuckDB", "Spark"}, {"DuckDB", "Spark"}
READING = {TableChange.RENAME_COLUMN: MAPPED, TableChange.DROP_COLUMN: MAPPED, TableChange.WIDEN: WIDENED}
"""As the guide of schema changes says. The others refuse the table."""
POLICY = SchemaPolicy(rename=OnChange.APPLY, drop_column=OnDrop.DROP)
RULES = tuple(TableRule(change.value, schema_changes=POLICY) for change in READING)


@pytest.fixture(scope="module", params=[("postgres", FEATURES)])
def altered(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[DecidedPipeline]:
    tables = [rule.source for rule in RULES]
    with decided_pipeline(DecidedPipeline, RULES, tables, tmp_path_factory.mktemp("altered"), request) as pipeline:
        for change in READING:
            pipeline.at_source(change.value, *pipeline.source.statements[change], INSERT)
        pipeline.settle()
        yield pipeline


@pytest.mark.parametrize("change", READING)
def test_other_libraries_read_the_table_or_refuse_it(altered: DecidedPipeline, change: TableChange) -> None:
    assert altered.outcome(change.value) == SAME
    names, truth = altered.truth(change.value)
    path = altered.replicator().targets.only.locate(altered.target(altered.name(change.value)))
    reading = set()
    for name, reader in READERS.items():
        try:
            rows = reader(altered.spark, path).to_pylist()
        except Exception as error:  # each library refuses with errors of its own
            print(f"{name}: {error}")
            continue
        found = Counter(tuple(None if row[one] is None else str(row[one]) for one in names) for row in rows)
        assert found == truth and {one for one in rows[0] if not one.startswith("_cdc_")} == set(names), name
        reading.add(name)
    assert reading == READING[change]
