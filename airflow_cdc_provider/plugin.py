"""The Airflow plugin: it registers the operator extra link."""

from __future__ import annotations

from airflow.sdk.plugins_manager import AirflowPlugin

from airflow_cdc_provider.links.staging import StagingLink


class CdcPlugin(AirflowPlugin):
    name = "cdc"
    operator_extra_links = [StagingLink()]  # noqa: RUF012  (declared so by Airflow)
