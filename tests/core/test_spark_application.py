"""The link to Spark's history server."""

from __future__ import annotations

import pytest

from airflow_cdc_provider.core.decisions.spark_application import HISTORY_SERVER, history_url
from airflow_cdc_provider.loader.spark_conf import expected_format, refusal_reason

LOGGED = {"spark.eventLog.enabled": "true"}


def url(address: str, **settings: str) -> str:
    conf = {**LOGGED, HISTORY_SERVER: address, **settings}
    return history_url(lambda name, default: conf.get(name, default), "app-7")


@pytest.mark.parametrize("address", ["spark.acme.com:18080", "http://spark.acme.com:18080/"])
def test_an_address_with_or_without_a_scheme_is_a_link(address: str) -> None:
    assert url(address) == "http://spark.acme.com:18080/history/app-7/"
    assert url("https://acme.com/spark") == "https://acme.com/spark/history/app-7/"


@pytest.mark.parametrize(
    "address", ["", "file:///var/log/spark", "javascript:alert(1)", "${hadoopconf-x}:18080", "a b"]
)
def test_anything_else_is_no_link(address: str) -> None:
    assert url(address) == ""
    assert refusal_reason(HISTORY_SERVER) == ""
    assert not address or expected_format(HISTORY_SERVER, address)


def test_without_an_event_log_the_server_has_no_page() -> None:
    assert url("h:1", **{"spark.eventLog.enabled": "false"}) == ""
    assert history_url(lambda name, default: default, "app-7") == ""
