"""Airflow connections as connectors and targets get them."""

from __future__ import annotations

import json

import pytest
from airflow.sdk.log import redact

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.hooks.connections import connection_info


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
