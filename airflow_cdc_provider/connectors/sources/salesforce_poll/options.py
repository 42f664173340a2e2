"""The YAML keys of a source that polls Salesforce objects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from airflow_cdc_provider.connectors.sources.polling.options import PollingOptions
from airflow_cdc_provider.connectors.sources.salesforce.options import Environment, SalesforceOptions
from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.core.spec.fields import doc

LEAST_COMMIT_LATENCY = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True)
class SalesforcePollOptions(PollingOptions):
    objects: tuple[str, ...] = doc("Objects that can be copied, by their API names.", non_empty=True)
    environment: Environment = doc(
        "`production` (also for Developer Edition) or `sandbox`: the login server, and the audience of a JWT.",
        Environment.PRODUCTION,
    )
    api_version: str = doc("Version of the REST and Bulk API, 58.0 or later.", "66.0")
    login_url: str = doc("URL that issues tokens; by default from the connection (`instance_url`, else `domain`).", "")

    @staticmethod
    def option_conflicts(source: Source) -> Iterator[tuple[str, str, str, str, str]]:
        """Code, key, problem, found, allowed."""
        given = source.options.get("commit_latency")
        if given is not None and timedelta(seconds=given) < LEAST_COMMIT_LATENCY:
            what = "records can become visible later than this after their timestamp"
            yield "DEF035", "commit_latency", what, f"{given:g} s", "60s or more; 300s is advised"

    @property
    def org(self) -> SalesforceOptions:
        """Options for the clients of the org. No channel is read."""
        return SalesforceOptions(environment=self.environment, api_version=self.api_version, login_url=self.login_url)
