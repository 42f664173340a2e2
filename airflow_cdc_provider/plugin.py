"""The Airflow plugin: the operator extra links, the API and the page of replicators."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.sdk.plugins_manager import AirflowPlugin

from airflow_cdc_provider.links.replicator import ReplicatorLink
from airflow_cdc_provider.links.spark_history import SparkHistoryLink


class CdcPlugin(AirflowPlugin):
    name = "cdc"
    operator_extra_links = [ReplicatorLink(), SparkHistoryLink()]  # noqa: RUF012  (declared so by Airflow)
    external_views = [  # noqa: RUF012
        {
            "name": "Replicators",
            "href": "cdc/",
            "destination": "nav",
            "category": "browse",
            "url_route": "replicators",
        },
        {"name": "Replicator", "href": "cdc/#/{DAG_ID}", "destination": "dag", "url_route": "replicator"},
    ]

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Only the API server asks for it. Every task imports this module, and a web framework takes it a second."""
        from airflow_cdc_provider.ui.app import create_app

        return [{"app": create_app(), "url_prefix": "/cdc", "name": "cdc"}]
