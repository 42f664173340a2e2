"""The replicator ``crm``: change events of a Salesforce org into Delta Lake, with the holes of such a stream.

The holes are an event without the changed values (a gap), a transaction too large for change events (an overflow), and
a position that the org no longer serves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_cdc_provider.sandbox.demo.run import DemoRun
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
    "BillingStreet": "2 New Street",
    "BillingCity": "Ulm",
    "BillingCountry": "Germany",
}
"""Six changed fields in each of 20,000 accounts: 120,000 changes in one transaction."""


def connection(org: OrgProcess) -> dict[str, object]:
    app = {"consumer_key": org.client_id, "consumer_secret": org.client_secret, "instance_url": org.instance_url}
    return {"conn_type": "salesforce", "extra": app}


def replicate(run: DemoRun, org: OrgProcess) -> bool:
    """Three runs. Returns whether the copies are identical to the org's records at the end."""
    accounts, contacts = sorted(org.state("Account")), sorted(org.state("Contact"))
    run.follow(NAME, f"first run, copies {len(accounts):,} accounts and {len(contacts):,} contacts")
    run.progress.show(NAME, "changing records at the source")
    burst(org, contacts)
    org.admin("gap", object="Contact", ids=contacts[:1])
    org.admin("update", object="Account", ids=accounts, values=OVERFLOWING)
    changes = len(accounts) * len(OVERFLOWING)
    tasks = run.follow(NAME, f"second run, after a burst, a gap and an overflow of {changes:,} changes")
    run.log(f"crm: {reconciliation(tasks)}")
    org.admin("update", object="Contact", ids=contacts[:1000], values={"LeadSource": "without an event"})
    org.admin("bus", reset=True)
    tasks = run.follow(NAME, "third run, after the org has lost the position of the copy")
    run.log(f"crm: {reconciliation(tasks)}")
    run.log("crm: verify")
    return run.verify(NAME)


def burst(org: OrgProcess, contacts: Sequence[str]) -> None:
    """42 transactions in a row."""
    for number in range(40):
        ids = contacts[number * 100 : number * 100 + 100]
        org.admin("update", object="Contact", ids=ids, values={"LeadSource": f"Campaign {number}"})
    org.admin("insert", object="Contact", records=[{"LastName": f"New {number}"} for number in range(500)])
    org.admin("delete", object="Contact", ids=list(contacts[-500:]))


def reconciliation(tasks: Mapping[str, str]) -> str:
    """The tasks of the group ``reconcile`` that succeeded in a run."""
    group = "reconcile."
    done = [name.removeprefix(group) for name, state in tasks.items() if state == "success" and name.startswith(group)]
    return f"reconciled: {' → '.join(done)}" if done else "nothing to reconcile"
