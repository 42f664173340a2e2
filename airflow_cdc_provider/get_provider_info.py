"""The provider's metadata for Airflow. Imports nothing: an error here would break every ``airflow`` command."""

from __future__ import annotations

from typing import Any

INTEGRATION = "Change Data Capture"


def get_provider_info() -> dict[str, Any]:
    return {
        "package-name": "airflow-cdc-provider",
        "name": INTEGRATION,
        "description": "Exact copies of source tables in lakehouse and warehouse tables, run by Airflow and Spark.",
        "integrations": [
            {
                "integration-name": INTEGRATION,
                "external-doc-url": "https://www.postgresql.org/docs/current/logical-replication.html",
                "tags": ["software"],
            }
        ],
        "operators": [
            {
                "integration-name": INTEGRATION,
                "python-modules": [
                    "airflow_cdc_provider.operators.spark",
                    "airflow_cdc_provider.operators.window",
                    "airflow_cdc_provider.operators.reconcile",
                    "airflow_cdc_provider.operators.monitor",
                ],
            }
        ],
        "sensors": [
            {"integration-name": INTEGRATION, "python-modules": ["airflow_cdc_provider.sensors.changes"]},
        ],
        "triggers": [
            {"integration-name": INTEGRATION, "python-modules": ["airflow_cdc_provider.triggers.changes"]},
        ],
        "hooks": [
            {
                "integration-name": INTEGRATION,
                "python-modules": ["airflow_cdc_provider.hooks.connections", "airflow_cdc_provider.hooks.spark"],
            }
        ],
        "extra-links": ["airflow_cdc_provider.links.replicator.ReplicatorLink"],
        "cli": ["airflow_cdc_provider.cli.commands.get_cli_commands"],
    }
