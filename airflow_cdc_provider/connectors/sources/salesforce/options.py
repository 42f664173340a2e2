"""The YAML keys of a Salesforce source."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar

from airflow_cdc_provider.core.spec.fields import doc


class Environment(StrEnum):
    PRODUCTION = "production"
    SANDBOX = "sandbox"


RETENTION = timedelta(hours=72)
"""How long Salesforce keeps events, whether they are read or not."""
REPEATS_WITHIN = RETENTION
"""How long Salesforce may publish an event again."""


@dataclass(frozen=True)
class SalesforceOptions:
    duplicates_within: ClassVar[timedelta] = REPEATS_WITHIN

    channel: str = doc(
        "Channel to read the changes from: `/data/ChangeEvents`, `/data/<Name>__chn`, or that of one object.",
        "/data/ChangeEvents",
    )
    environment: Environment = doc(
        "`production` (also for Developer Edition) or `sandbox`: the login server, and the audience of a JWT.",
        Environment.PRODUCTION,
    )
    api_version: str = doc("Version of the REST and Bulk API, 58.0 or later.", "66.0")
    login_url: str = doc("URL that issues tokens; by default from the connection (`instance_url`, else `domain`).", "")
    pubsub_endpoint: str = doc(
        "Host and port of the Pub/Sub API; regional endpoints keep events in their region.",
        "api.pubsub.salesforce.com:7443",
    )
    pubsub_tls: bool = doc("Whether the Pub/Sub endpoint uses TLS. Salesforce's endpoints do.", True)
    idle: timedelta = doc(
        "How long the channel must be silent before a window ends without a newer transaction.", timedelta(seconds=20)
    )
