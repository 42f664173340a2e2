"""Valid definitions and their defaults."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest

from airflow_cdc_provider.connectors.sources.salesforce.options import Environment, SalesforceOptions
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import (
    Comparison,
    Condition,
    Definition,
    OnBadRecord,
    OnDelete,
    Quarantine,
    TableRule,
)
from airflow_cdc_provider.loader import load_file
from airflow_cdc_provider.loader.types import known_kinds, options_class
from tests.provider.shop_yaml import GOOD, ONE_BUCKET, SOURCE, load, problems, rule, swap

SHOP = Path(__file__).parents[2] / "dags" / "replicators" / "shop.yaml"


def test_the_example_is_read() -> None:
    definition = load_file(SHOP).definition
    assert definition.name == "shop"
    assert definition.source.options == {"publication": "cdc_shop"}
    assert [rule.source for rule in definition.tables] == [
        "public.customers",
        "public.orders",
        "public.order_lines",
    ]
    assert definition.tables[1].on_delete is OnDelete.SOFT
    assert definition.tables[2].columns.exclude == ("internal_note",)
    assert definition.tables[2].cluster_by == ("order_id",)
    assert definition.staging.retain == timedelta(days=7)
    assert definition.freshness == timedelta(minutes=10)
    assert definition.spark.conf == {"spark.driver.memory": "2g"}
    assert (definition.dag.owner, definition.dag.tags, definition.dag.retries) == ("data-platform", ("shop",), 2)


def test_a_definition_can_be_written_to_json_and_read_back() -> None:
    definition = load_file(SHOP).definition
    assert from_plain(Definition, to_plain(definition)) == definition


def test_a_salesforce_source_is_read_with_its_own_keys() -> None:
    crm = "{type: salesforce, connection: crm, idle: 30s, environment: sandbox, pubsub_tls: false}"
    definition = load(swap(SOURCE, crm))
    options = from_plain(Definition, json.loads(json.dumps(to_plain(definition)))).source.options
    assert from_plain(SalesforceOptions, options) == SalesforceOptions(
        environment=Environment.SANDBOX, pubsub_tls=False, idle=timedelta(seconds=30)
    )


def test_a_source_of_messages_takes_the_keys_of_its_format_too() -> None:
    postgres = "{type: postgres, connection: shop_db, publication: cdc_shop}"
    feed = "{type: kafka, connection: k, topics: ['srv.*'], format: debezium, topic_prefix: srv, unwrapped: true}"
    options = load(swap(postgres, feed)).source.options
    assert (options["topics"], options["format"]) == (["srv.*"], "debezium")
    assert (options["topic_prefix"], options["unwrapped"]) == ("srv", True)
    files = "{type: files, location: /events, format: ydb, mode: UPDATES, lateness: 3h}"
    source = load(swap(postgres, files)).source
    assert (source.connection, source.options["mode"], source.options["lateness"]) == ("", "UPDATES", 10_800)


def test_locations_are_folders_or_buckets() -> None:
    azure = ("abfss://lake@acme1.dfs.core.windows.net", "abfss://lake-1@acme.blob.core.windows.net/a/b/")
    buckets = ("s3://lake", "s3://my.lake-1/a/b/", "gs://lake", "gs://my_lake.acme/a/b/")
    for location in ("/", "/lake", "file:///lake", *buckets, *azure):
        assert load(swap("/data/lake/shop", location)).target.location == location
    assert load(ONE_BUCKET.replace("aws_b", "aws_a")).staging.connection == "aws_a"


def test_different_connections_are_for_different_buckets_or_accounts_and_cloud_storage_has_one() -> None:
    def both(target: str, staging: str) -> str:
        return ONE_BUCKET.replace("s3://lake/shop", target).replace("s3://lake/_cdc", staging)

    host = "dfs.core.windows.net"
    for target, staging in (("s3://one/x", "s3://two/x"), (f"abfss://lake@one.{host}", f"abfss://lake@two.{host}")):
        assert load(both(target, staging)).staging.connection == "aws_b"
    for target, staging in (("gs://one/x", "gs://two/x"), (f"abfss://lake@one.{host}", f"abfss://log@one.{host}")):
        assert [problem.code for problem in problems(both(target, staging))] == ["DEF050"]


def test_filters_are_read_with_their_types() -> None:
    conditions = rule(
        "where:\n"
        "  - {column: state, op: in, value: [open, 'no', 3]}\n"
        "  - {column: total, op: '>=', value: 1.5}\n"
        "  - {column: paid, op: '=', value: true}\n"
        "  - {column: gone, op: is null}"
    )
    assert load(conditions).tables[0].where == (
        Condition("state", Comparison.IN, ("open", "no", 3)),
        Condition("total", Comparison.GREATER_OR_EQUAL, 1.5),
        Condition("paid", Comparison.EQUAL, True),
        Condition("gone", Comparison.IS_NULL),
    )


def test_limits_of_a_quarantine_are_read_with_it() -> None:
    table = load(rule("on_bad_record: quarantine\nquarantine: {max_rows: 5, max_share: 0.01}")).tables[0]
    assert (table.on_bad_record, table.quarantine) == (OnBadRecord.QUARANTINE, Quarantine(5, 0.01))
    assert load(GOOD).tables[0].on_bad_record is OnBadRecord.STOP


def test_missing_keys_have_defaults() -> None:
    definition = load(GOOD)
    assert definition.tables == (TableRule("public.orders"),)
    assert definition.resync.max_delete == 0.2
    assert definition.spark.connection == "spark_default"
    assert load(swap('schedule: "*/5 * * * *"\n', "")).schedule is None
    assert load(swap('"*/5 * * * *"', "null")).schedule is None


def test_a_byte_order_mark_is_accepted() -> None:
    assert load(b"\xef\xbb\xbf" + GOOD.encode()).name == "shop"


@pytest.mark.parametrize("schedule", ["0 6 * JAN,jul MON-FRI", "@hourly", "0 0 29 2 *", "*/15 8-18 * * 1-5"])
def test_a_cron_expression_may_name_months_and_weekdays_or_be_a_preset(schedule: str) -> None:
    assert load(swap('"*/5 * * * *"', f'"{schedule}"')).schedule == schedule


@pytest.mark.parametrize(
    ("text", "value"),
    [("0.1", 0.1), ("1e3", 1000.0), ("1.50", 1.5), ("'12345678901234567.89'", "12345678901234567.89")],
)
def test_a_number_of_a_filter_is_exact_or_a_text(text: str, value: object) -> None:
    (condition,) = load(rule(f"where: [{{column: a, op: '<=', value: {text}}}]")).tables[0].where
    assert condition.value == value


POLLED = "{type: jdbc_poll, connection: c, driver: postgresql+psycopg, timestamp_column: at, timestamp_columns: %s}"


def test_tables_may_have_the_names_of_secrets() -> None:
    columns = {"public.access_tokens": "changed_at", "public.password_resets": "at"}
    listed = "{" + ", ".join(f"{table}: {column}" for table, column in columns.items()) + "}"
    assert load(swap(SOURCE, POLLED % listed)).source.options["timestamp_columns"] == columns


def test_every_mapping_says_whether_its_keys_are_names() -> None:
    """In all others a key that names a secret is refused."""
    free = {
        f"{kind}.{member.name}"
        for registry in ("sources", "formats", "targets")
        for kind in known_kinds(registry)
        for member in fields(options_class(registry, kind))
        if "dict[str" in str(member.type) and not {"form", "keys"} & member.metadata.keys()
    }
    assert free == set()
