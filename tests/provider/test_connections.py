"""Airflow connections as connectors and targets get them."""

from __future__ import annotations

import json

import pytest
from airflow.sdk.log import redact

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo, Secrets
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Definition, Source, Staging, TableRule, Target
from airflow_cdc_provider.hooks.connections import connection_info, secrets_of


def test_all_fields_of_a_connection_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "postgres://cdc:p%40ss-word@db.local:5433/shop?sslmode=require"
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", uri)
    assert connection_info("shop_db") == ConnectionInfo(
        "shop_db", "db.local", 5433, "cdc", "p@ss-word", "shop", {"sslmode": "require"}
    )


def test_no_connection_id_is_an_empty_connection() -> None:
    assert connection_info("") == ConnectionInfo()


def test_an_unknown_connection_is_reported_with_the_command_that_adds_it() -> None:
    with pytest.raises(CheckFailed, match=r"CON001.*nowhere.*airflow connections add nowhere"):
        connection_info("nowhere")


@pytest.mark.parametrize("extra", ['{"sslmode": ', '["a", "list"]', '"text"'])
def test_an_extra_that_is_no_json_object_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, extra: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps({"conn_type": "postgres", "extra": extra}))
    with pytest.raises(CheckFailed, match=r"CON002.*shop_db") as raised:
        connection_info("shop_db")
    assert extra not in str(raised.value)


def test_password_and_secret_extras_are_masked_in_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"conn_type": "aws", "password": "cl0ud-p4ss", "extra": {"api_key": "k-88-yy-77", "region": "eu-west-1"}}
    monkeypatch.setenv("AIRFLOW_CONN_LAKE", json.dumps(fields))
    info = connection_info("lake")
    assert redact("cl0ud-p4ss and k-88-yy-77 in eu-west-1") == "*** and *** in eu-west-1"
    assert "cl0ud-p4ss" not in repr(info)
    assert "k-88-yy-77" not in repr(info)


LAKE, WAREHOUSE = Target("delta", "/lake"), Target("postgres", connection="wh", name="wh")


def definition(*targets: Target) -> Definition:
    tables = (TableRule("public.t"),)
    return Definition(
        name="shop", source=Source("postgres", "shop_db"), targets=targets, tables=tables, staging=Staging("/staging")
    )


def test_a_missing_connection_of_one_target_is_a_problem_of_that_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", "postgres://db.local/shop")
    found = secrets_of(definition(LAKE, WAREHOUSE))
    assert [one.code for one in found.of_target("wh").problems] == ["CON001"]
    assert (found.of_target("default").problems, found.source.host) == ((), "db.local")
    assert from_plain(Secrets, json.loads(json.dumps(to_plain(found)))) == found
    monkeypatch.setenv("AIRFLOW_CONN_WH", "postgres://wh.local/shop")
    assert secrets_of(definition(LAKE, WAREHOUSE)).of_target("wh").target.host == "wh.local"


def test_a_replicator_without_a_usable_target_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", "postgres://db.local/shop")
    for targets in ((WAREHOUSE,), (WAREHOUSE, Target("mysql", connection="other", name="b"))):
        with pytest.raises(CheckFailed) as raised:
            secrets_of(definition(*targets))
        assert [one.where for one in raised.value.problems] == [f"connection {one.connection}" for one in targets]
