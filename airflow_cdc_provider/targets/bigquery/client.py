"""Clients of BigQuery."""

from __future__ import annotations

from typing import Any

from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.connections.google import google_endpoint, google_login
from airflow_cdc_provider.core.registry import load_library
from airflow_cdc_provider.targets.bigquery.options import BigQueryOptions


def open_client(connection: ConnectionInfo, options: BigQueryOptions) -> Any:
    """A client of ``google.cloud.bigquery`` for the project that pays."""
    credentials, project = google_login(connection, "bigquery")
    url = google_endpoint(connection)
    return library().Client(
        project=options.job_project or options.project or project,
        credentials=credentials,
        location=options.region or None,
        client_options={"api_endpoint": url} if url else None,
    )


def project_of(connection: ConnectionInfo, options: BigQueryOptions) -> str:
    """The project of the dataset."""
    return options.project or google_login(connection, "bigquery")[1]


def library() -> Any:
    return load_library("google.cloud.bigquery", "target", "bigquery")
