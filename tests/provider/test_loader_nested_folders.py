"""Folders that one replicator removes or reads, and that are another one's."""

from __future__ import annotations

import time
from itertools import combinations
from pathlib import Path

import pytest

from airflow_cdc_provider.core.errors import DefinitionInvalid
from airflow_cdc_provider.loader.files import load_folder, load_text
from airflow_cdc_provider.loader.nested_folders import STAGING, TABLES, UsedFolder, overlaps_between

POSTGRES = "source: {type: postgres, connection: pg, publication: p}"
FEED = "source: {{type: files, location: {}, format: debezium, topic_prefix: p}}"


def text(target: str, staging: str, tables: str = "public.orders", source: str = POSTGRES, name: str = "shop") -> str:
    return f"""
name: {name}
{source}
target: {target}
tables:
  - source: "{tables}"
staging: {{location: "{staging}"}}
"""


def delta(location: str) -> str:
    return f"{{type: delta, location: {location}}}"


OVERLAPS = {
    "the table is the folder of staging": text(delta("/data/lake"), "/data/lake", name="orders"),
    "the table is the folder of staging, in other words": text(delta("/data//lake/"), "/data/lake", name="orders"),
    "a table of a pattern may be it": text(delta("/data/lake"), "/data/lake", tables="public.*"),
    "a pattern has one beginning": text(delta("/data/lake"), "/data/lake/sales_cdc", tables="sales.*"),
    "staging is in the table": text(delta("/data/lake"), "/data/lake/orders"),
    "the tables are in staging": text(delta("/data/cdc/shop/lake"), "/data/cdc"),
    "the namespace is in staging": text("{type: iceberg, location: /data}", "/data", name="cdc"),
    "the feed has staging": text(delta("/data/lake"), "/data/events/_cdc", source=FEED.format("/data/events")),
    "the feed is in staging": text(delta("/data/lake"), "/data", source=FEED.format("/data/shop/events")),
    "the feed has the tables": text(delta("s3://a-lake/x/y"), "s3://b-cdc/x", source=FEED.format("s3://a-lake/x")),
    "the feed is a bucket": text(delta("/data/lake"), "gs://changes/cdc", source=FEED.format("gs://changes/")),
}
APART = {
    "side by side": text(delta("/data/lake/shop"), "/data/lake/_cdc"),
    "below the tables": text(delta("/data/lake"), "/data/lake/_cdc", tables="public.*"),
    "beside a table of another name": text(delta("/data/lake"), "/data/lake/cdc"),
    "beside the namespace": text("{type: iceberg, location: /data/lake, catalog: shop}", "/data/lake/_cdc"),
    "one name begins with the other": text(delta("/data/lake"), "/data/lake/orders_cdc"),
    "beside the tables of another schema": text(delta("/data/lake"), "/data/lake/staging", tables="sales.*"),
    "beside tables with one beginning": text(delta("/data/lake"), "/data/lake/staging", tables="public.or*"),
    "another bucket": text(delta("s3://a-lake/x"), "s3://b-lake", name="x"),
}


@pytest.mark.parametrize("definition", OVERLAPS.values(), ids=OVERLAPS)
def test_folders_in_one_another_are_refused(definition: str) -> None:
    with pytest.raises(DefinitionInvalid, match="DEF104") as refused:
        load_text(definition.encode(), "a.yaml")
    (problem,) = refused.value.problems
    assert problem.where.startswith("a.yaml:") and problem.found and problem.do


@pytest.mark.parametrize("definition", APART.values(), ids=APART)
def test_folders_apart_are_accepted(definition: str) -> None:
    assert load_text(definition.encode(), "a.yaml").definition


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (text(delta("/data/lake"), "/data/cdc"), text(delta("/data/cdc/shop"), "/data/b", name="b")),
        (text(delta("/data/lake"), "/data/cdc"), text(delta("/data/b"), "/data/cdc/shop", name="b")),
        (text(delta("/data/lake"), "/data/cdc"), text(delta("/b"), "/c", source=FEED.format("/data/lake"), name="b")),
    ],
    ids=["staging and tables", "staging and staging", "tables and feed"],
)
def test_used_folders_two_replicators_are_apart(first: str, second: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(first)
    assert load_folder(tmp_path).problems == ()
    (tmp_path / "b.yaml").write_text(second)
    loaded = load_folder(tmp_path)
    assert loaded.loaded == {} and {problem.code for problem in loaded.problems} == {"DEF104"}


def test_staging_is_moved_and_the_copies_stay() -> None:
    with pytest.raises(DefinitionInvalid, match="DEF104") as refused:
        load_text(OVERLAPS["staging is in the table"].encode(), "a.yaml")
    assert "airflow cdc move shop --staging" in refused.value.problems[0].do


def test_a_replicator_is_not_omitted_for_a_table_that_a_pattern_may_have(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text(delta("/data/lake"), "/data/cdc", tables="public.*"))
    (tmp_path / "b.yaml").write_text(text(delta("/data/b"), "/data/lake", name="b"))
    assert load_folder(tmp_path).problems == ()


def test_folders_of_many_tables_are_compared_at_once() -> None:
    parts, names = ("file", "", "data", "lake"), frozenset(f"t{number}*" for number in range(300))
    tables = UsedFolder(TABLES, ("target",), parts, names)
    used = [[UsedFolder(STAGING, (), ("file", "", "cdc", str(number))), tables] for number in range(100)]
    began = time.perf_counter()
    assert not [found for one, other in combinations(used, 2) for found in overlaps_between(one, other)]
    assert time.perf_counter() - began < 10


def test_several_replicators_have_one_location_of_staging(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text(delta("/data/a"), "/data/cdc", name="a"))
    (tmp_path / "b.yaml").write_text(text(delta("/data/b"), "/data/cdc", name="b"))
    assert load_folder(tmp_path).problems == ()
