"""The CRM: change events of a Salesforce org into Delta Lake, with the holes that such a stream has.

An event that says that a record changed and not how (a gap), a transaction so large that its changes are not told (an
overflow), and a place in the stream that the org serves no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_cdc_provider.sandbox.demo.stage import Stage
from airflow_cdc_provider.sandbox.salesforce.process import OrgProcess

NAME = "crm"
REPLICATOR = """\
name: crm
source:
  type: salesforce
  connection: crm_org
  reconcile: auto
  idle: 3s
  pubsub_endpoint: {pubsub_endpoint}
  pubsub_tls: false
target: {{type: delta, location: {home}/lake/crm}}
tables:
  - source: Account
  - source: Contact
staging: {{location: {home}/lake/_cdc, retain: 3d}}
spark: {{connection: spark_default, conf: {{spark.driver.memory: 2g}}}}
dag: {{owner: demo, tags: [demo], retries: 2, retry_delay: 10s}}
"""
ORG = ("--size", "demo", "--keepalive", "0.5")

OVERFLOWING = {
    "Industry": "Media",
    "Phone": "+49 731 1",
    "Website": "https://example.org",
    "BillingStreet": "2 New Road",
    "BillingCity": "Ulm",
    "BillingCountry": "Germany",
}
"""Six changed fields in each of 20,000 accounts: 120,000 changes in one transaction."""


def connection(org: OrgProcess) -> dict[str, object]:
    app = {"consumer_key": org.client_id, "consumer_secret": org.client_secret, "instance_url": org.instance_url}
    return {"conn_type": "salesforce", "extra": app}


def play(stage: Stage, org: OrgProcess) -> bool:
    """Whether both sides are identical in the end."""
    accounts, contacts = sorted(org.state("Account")), sorted(org.state("Contact"))
    stage.follow(NAME, f"first run, copies {len(accounts):,} accounts and {len(contacts):,} contacts")
    stage.progress.tell(NAME, "changing records at the source")
    burst(org, contacts)
    org.admin("gap", object="Contact", ids=contacts[:1])
    org.admin("update", object="Account", ids=accounts, values=OVERFLOWING)
    tasks = stage.follow(NAME, f"second run, a burst, a gap, and an overflow of {overflow(accounts):,} changes")
    stage.say(f"crm: {branch(tasks)}")
    org.admin("update", object="Contact", ids=contacts[:1000], values={"LeadSource": "never told"})
    org.admin("bus", reset=True)
    tasks = stage.follow(NAME, "third run, the org no longer serves our position")
    stage.say(f"crm: {branch(tasks)}")
    stage.say("crm: verify")
    return stage.verify(NAME)


def burst(org: OrgProcess, contacts: Sequence[str]) -> None:
    """Forty transactions, one behind the other."""
    for number in range(40):
        of = contacts[number * 100 : number * 100 + 100]
        org.admin("update", object="Contact", ids=of, values={"LeadSource": f"Campaign {number}"})
    org.admin("insert", object="Contact", records=[{"LastName": f"New {number}"} for number in range(500)])
    org.admin("delete", object="Contact", ids=list(contacts[-500:]))


def overflow(accounts: Sequence[Any]) -> int:
    return len(accounts) * len(OVERFLOWING)


def branch(tasks: Mapping[str, str]) -> str:
    """The tasks of the group ``reconcile`` that a run went through."""
    group = "reconcile."
    taken = [name.removeprefix(group) for name, state in tasks.items() if state == "success" and name.startswith(group)]
    return f"reconciled: {' → '.join(taken)}" if taken else "nothing to reconcile"
