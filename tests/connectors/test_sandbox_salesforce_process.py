"""The sandbox org from outside: its admin commands over HTTP, its demo data, and as a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
import requests

from airflow_cdc_provider.core.errors import CheckFailed
from airflow_cdc_provider.sandbox.salesforce import SalesforceOrg
from airflow_cdc_provider.sandbox.salesforce.demo import SMALL, Load, fill
from airflow_cdc_provider.sandbox.salesforce.process import OrgProcess
from airflow_cdc_provider.sandbox.salesforce.rest.admin import COMMANDS
from airflow_cdc_provider.sandbox.salesforce.state import OrgState
from tests.connectors.salesforce_bus import Subscriber, published
from tests.connectors.salesforce_rest import Client, V, refusal
from tests.processes import is_running
from tests.waiting import until

pytestmark = pytest.mark.server


@pytest.fixture
def org() -> Iterator[SalesforceOrg]:
    with SalesforceOrg(keepalive_s=0.1) as org:
        yield org


@pytest.fixture
def client(org: SalesforceOrg) -> Iterator[Client]:
    with Client(org) as client:
        yield client


def test_records_are_changed_by_command_at_once_or_in_a_named_transaction(org: SalesforceOrg, client: Client) -> None:
    keys = client.admin("insert", object="Account", records=[{"Name": "A"}, {"Name": "B"}])["result"]
    opened = client.admin("begin", origin="")["transaction"]
    client.admin("update", transaction=opened, object="Account", ids=keys, values={"Phone": "1"})
    client.admin("delete", transaction=opened, object="Account", ids=keys[1:])
    assert client.get("/admin/org").json()["open_transactions"] == [opened]
    assert {row["Phone"] for row in org.ledger.state("Account").values()} == {None}
    client.admin("commit", transaction=opened)
    events = Subscriber(org).read()
    assert [(event.kind, event.ids) for event in events[2:]] == [("UPDATE", keys), ("DELETE", keys[1:])]
    client.admin("undelete", object="Account", ids=keys[1:])
    assert set(org.ledger.state("Account")) == set(keys)


def test_the_ledger_can_be_read_at_any_time(org: SalesforceOrg, client: Client) -> None:
    (key,) = client.admin("load", object="Account", records=[{"Name": "A"}])["ids"]
    loaded = org.ledger.last
    client.admin("delete", object="Account", ids=[key])
    lines = client.get("/admin/ledger/Account", params={"number": str(loaded)}).text.splitlines()
    assert [json.loads(line)["Name"] for line in lines] == ["A"]
    assert client.get("/admin/ledger/Account").text == ""
    everything = client.get("/admin/ledger/Account", params={"everything": "true"}).text
    assert json.loads(everything)["IsDeleted"] is True
    (commit,) = map(json.loads, client.get("/admin/ledger", params={"after": str(loaded)}).text.splitlines())
    assert commit["changes"] == [["Account", key, True]]


def test_every_command_answers_a_mistake_with_its_reason(client: Client) -> None:
    assert refusal(client.post("/admin/nothing", json={})) == (404, "NOT_FOUND")
    assert refusal(client.post("/admin/commit", json={"transaction": "?"})) == (400, "BAD_COMMAND")
    assert refusal(client.post("/admin/faults", json={"http": [{"math": "x"}]})) == (400, "BAD_COMMAND")
    assert refusal(client.post("/admin/insert", json={"object": "Account", "records": [{}]}))[1] == (
        "REQUIRED_FIELD_MISSING"
    )


def test_the_docstring_of_the_package_lists_every_command() -> None:
    from airflow_cdc_provider.sandbox import salesforce

    assert [name for name in COMMANDS if f"``{name}``" not in (salesforce.__doc__ or "")] == []


def test_faults_and_permissions_are_set_by_command(org: SalesforceOrg, client: Client) -> None:
    client.admin("faults", http=[{"match": "", "status": 503, "times": 2}], truncate_csv=1)
    assert client.admin("faults")["hits"] == 0
    assert client.get(f"{V}/limits").status_code == 503
    client.admin("faults", clear=True)
    assert client.get(f"{V}/limits").status_code == 200 and org.faults.truncate_csv == 0
    client.admin("permissions", access={"Account": "none"}, hidden=[["Contact", "Phone"]])
    assert refusal(client.query("SELECT Id FROM Account")) == (400, "INVALID_TYPE")
    assert refusal(client.query("SELECT Phone FROM Contact")) == (400, "INVALID_FIELD")


def test_fields_clock_and_channels_are_changed_by_command(org: SalesforceOrg, client: Client) -> None:
    client.admin("field", object="Account", field={"kind": "currency", "name": "Fee__c", "precision": 10, "scale": 3})
    (key,) = client.admin("insert", object="Account", records=[{"Name": "A", "Fee__c": "1.23456"}])["result"]
    assert org.ledger.state("Account")[key]["Fee__c"] == 1.235
    client.admin("drop_field", object="Account", name="Fee__c")
    assert "Fee__c" not in org.ledger.state("Account")[key]
    client.admin("channel", name="Work__chn", members=[{"entity": "Task", "filter_expression": "Status = 'Open'"}])
    assert org.channels.captured() >= {"Account", "Task"}
    before = org.clock.now_ms()
    client.admin("clock", advance=3600)
    assert org.clock.now_ms() - before >= 3_600_000
    client.admin("rules", overflow=1)
    client.admin("update", object="Account", ids=[key], values={"Phone": "1", "Rating": "Hot"})
    assert Subscriber(org).read()[-1].kind == "GAP_OVERFLOW"


def test_the_demo_is_reproducible_and_its_writer_reports_all_its_changes() -> None:
    orgs = [OrgState(), OrgState()]
    for org in orgs:
        org.clock.freeze()
        fill(org, SMALL)
        Load(org, seed=7).run(60)
    first, second = ({name: org.ledger.state(name) for name in ("Account", "Contact", "Invoice__c")} for org in orgs)
    assert [len(rows) for rows in first.values()] == [len(rows) for rows in second.values()]
    phones = [[row["Phone"] for row in state["Account"].values()] for state in (first, second)]
    assert phones[0] == phones[1]
    kinds = {event.kind for event in published(orgs[0])}
    assert kinds == {"CREATE", "UPDATE", "DELETE"}
    assert any(event.diffs for event in published(orgs[0]))
    assert any(len(event.ids) > 1 for event in published(orgs[0]))


def test_a_separate_process_behaves_as_an_org_in_a_thread() -> None:
    with OrgProcess("--size", "small", "--keepalive", "0.1", "--overflow", "50") as org:
        pid = org.pid
        assert len(org.state("Account")) == SMALL.accounts
        key = org.admin("insert", object="Account", records=[{"Name": "A"}])["result"][0]
        assert org.state("Account")[key]["Name"] == "A"
        form = {"grant_type": "client_credentials", "client_id": org.client_id, "client_secret": org.client_secret}
        token = requests.post(f"{org.instance_url}/services/oauth2/token", data=form, timeout=60).json()
        assert token["id"].split("/")[-2] == org.org_id
        port = org.instance_url.rpartition(":")[2]
        with pytest.raises(CheckFailed, match="ENV017"), OrgProcess("--size", "empty", "--port", port):
            pass
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_it_ends_with_a_killed_parent() -> None:
    program = (
        "from airflow_cdc_provider.sandbox.salesforce.process import OrgProcess\n"
        "with OrgProcess('--size', 'empty') as org:\n"
        "    print(org.pid, flush=True)\n"
        "    input()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    until(lambda: not is_running(pid), "the end of an org whose parent is gone")
