"""``check`` reports every problem of an org at once, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.salesforce.carried import identities, not_carried, omitted
from airflow_cdc_provider.connectors.sources.salesforce.channels import (
    ChannelFacts,
    channel_facts,
    read_channel,
    single_entity,
)
from airflow_cdc_provider.connectors.sources.salesforce.check import find_problems
from airflow_cdc_provider.connectors.sources.salesforce.event_schema import entity_of, event_name
from airflow_cdc_provider.connectors.sources.salesforce.options import SalesforceOptions
from airflow_cdc_provider.connectors.sources.salesforce.org import Org
from airflow_cdc_provider.connectors.sources.salesforce.positions import ChannelPosition, require_instance
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.steps import TableTask
from airflow_cdc_provider.core.errors import PositionLost, Problem, SourceUnavailable
from airflow_cdc_provider.core.spec.definition import Comparison, Condition
from tests.connectors import salesforce_events as events
from tests.connectors.salesforce_events import CHANNEL, task
from tests.connectors.salesforce_http import ORG, ROOT, Answer, HttpServer, refused
from tests.connectors.salesforce_pubsub import EventServer

pytestmark = pytest.mark.server

CUSTOM = "/data/Sales__chn"
MEMBER = {"EventChannel": "ChangeEvents", "FilterExpression": None}


@dataclass
class FakeOrg:
    """An org with Account and Invoice__c in its channel. ``tooling`` answers for the requested object."""

    rest: HttpServer
    events: EventServer
    limits: dict[str, dict[str, int]] = field(default_factory=lambda: {"DailyApiRequests": {"Max": 9, "Remaining": 1}})
    members: list[dict[str, Any]] = field(
        default_factory=lambda: [
            {**MEMBER, "Id": f"0v8{one}", "SelectedEntity": event_name(one)} for one in ("Account", "Invoice__c")
        ]
    )

    def __post_init__(self) -> None:
        self.rest.on("GET", "/services/data/", Answer([{"version": "58.0"}, {"version": "66.0"}]))
        self.rest.on("GET", f"{ROOT}/limits", lambda request: Answer(self.limits))
        for entity, answer in events.DESCRIBES.items():
            self.rest.on("GET", f"{ROOT}/sobjects/{entity}/describe", Answer(answer))
        self.rest.on("GET", f"{ROOT}/tooling/query", self._tooling)
        self.events.accepted = {f"token-{n}" for n in range(1, 9)}
        self.events.topics |= {"/data/AccountChangeEvent": True, "/data/Invoice__ChangeEvent": True}

    def _tooling(self, request: Any) -> Answer:
        channels = [{"Id": "0YLxx", "DeveloperName": "Sales"}]
        members = "PlatformEventChannelMember" in request.query["q"]
        return Answer({"done": True, "records": self.members if members else channels})

    def org(self, **options: Any) -> Org:
        extra = {"consumer_key": "k", "consumer_secret": "s3cret"}
        made = SalesforceOptions(
            login_url=self.rest.url, pubsub_endpoint=self.events.endpoint, pubsub_tls=False, **options
        )
        return Org(ConnectionInfo("crm", extra=extra), made, "crm")

    def problems(self, *tasks: TableTask, **options: Any) -> dict[str, Problem]:
        found = find_problems(self.org(**options), tasks or (task("Account"), task("Invoice__c")))
        assert all(problem.do for problem in found), "each has a remedy"
        assert not any("s3cret" in str(problem) or "token-" in str(problem) for problem in found)
        assert len({(one.code, one.where) for one in found}) == len(found)
        return {problem.code: problem for problem in found}


@pytest.fixture
def fake_org(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOrg]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HttpServer() as rest, EventServer() as events:
        yield FakeOrg(rest, events)


def test_an_org_that_is_ready_has_no_problems(fake_org: FakeOrg) -> None:
    assert fake_org.problems() == {}


def test_all_problems_are_reported_at_once(fake_org: FakeOrg) -> None:
    fake_org.limits = {"DailyApiRequests": {"Max": 9, "Remaining": 0}}
    fake_org.members[0]["FilterExpression"] = "Type = 'Customer'"
    fake_org.events.topics["/data/Invoice__ChangeEvent"] = False
    rule = {"where": (Condition("Type", Comparison.EQUAL, "x"),), "key": ("Name",)}
    found = fake_org.problems(task("Account", **rule), task("Invoice__c"), task("Contact"), api_version="66.0")
    assert set(found) == {"SRC040", "SRC051", "SRC055", "SRC016", "SRC018", "SRC050"}


def test_case_31_an_object_that_the_channel_would_omit_silently_is_reported(fake_org: FakeOrg) -> None:
    fake_org.events.topics["/data/AccountChangeEvent"] = False
    (problem,) = fake_org.problems().values()
    assert (problem.code, problem.where) == ("SRC055", "Account")
    assert "View All Records" in problem.allowed


def test_case_31_an_object_without_membership_is_reported(fake_org: FakeOrg) -> None:
    (problem,) = fake_org.problems(task("Contact")).values()
    assert (problem.code, problem.where) == ("SRC050", "Contact") and "Change Data Capture" in problem.do


def test_case_32_a_member_with_a_filter_is_refused_and_the_filter_reported(fake_org: FakeOrg) -> None:
    fake_org.members[0]["FilterExpression"] = "Type = 'Customer'"
    (problem,) = fake_org.problems().values()
    assert (problem.code, problem.where) == ("SRC051", "Account") and "Type = 'Customer'" in problem.found


def test_runs_ask_what_the_channel_omits_and_since_when_it_carries_an_object(fake_org: FakeOrg) -> None:
    org, tasks = fake_org.org(), (task("Account"), task("Invoice__c"))
    channel = read_channel(org.rest, CHANNEL)
    assert not_carried(org, channel, tasks) == {}
    known = identities(channel, ["Account", "Contact"])
    assert known.keys() == {"Account"}
    fake_org.members[0] |= {"Id": "0v8again", "FilterExpression": "Type = 'Customer'"}
    fake_org.events.topics["/data/Invoice__ChangeEvent"] = False
    channel = read_channel(org.rest, CHANNEL)
    found = not_carried(org, channel, tasks)
    assert {table: problem.code for table, problem in found.items()} == {"Account": "SRC051", "Invoice__c": "SRC055"}
    assert omitted(org, tasks).keys() == {"Invoice__c"}
    now = identities(channel, ["Account"])["Account"]
    assert known["Account"].membership != now.membership and known["Account"].sent != now.sent


def test_case_32_invisible_members_are_a_problem(fake_org: FakeOrg) -> None:
    fake_org.rest.on("GET", f"{ROOT}/tooling/query", refused(403, "INSUFFICIENT_ACCESS"))
    (problem,) = fake_org.problems().values()
    assert problem.code == "SRC052" and "View Setup" in problem.do


def test_case_30_used_up_deliveries_are_reported_before_a_run_needs_them(fake_org: FakeOrg) -> None:
    fake_org.limits["DailyDeliveredPlatformEvents"] = {"Max": 25_000, "Remaining": 0}
    (problem,) = fake_org.problems().values()
    assert problem.code == "SRC041" and "0 of 25000 left" in problem.found


def test_case_50_a_column_that_the_user_no_longer_sees_is_reported_before_it_becomes_null(fake_org: FakeOrg) -> None:
    held = events.described_as("Account").schema
    visible = [one for one in events.DESCRIBES["Account"]["fields"] if one["name"] not in ("Phone", "Fax")]
    fake_org.rest.on("GET", f"{ROOT}/sobjects/Account/describe", Answer({"name": "Account", "fields": visible}))
    (problem,) = fake_org.problems(task("Account", held)).values()
    assert (problem.code, problem.found) == ("SRC054", "Phone, Fax")


def test_case_57_an_object_that_cannot_be_queried_is_refused(fake_org: FakeOrg) -> None:
    answer = {**events.DESCRIBES["Invoice__c"], "queryable": False}
    fake_org.rest.on("GET", f"{ROOT}/sobjects/Invoice__c/describe", Answer(answer))
    assert set(fake_org.problems()) == {"SRC053"}


def test_a_missing_object_is_reported(fake_org: FakeOrg) -> None:
    fake_org.rest.on("GET", f"{ROOT}/sobjects/Invoice__c/describe", refused(404, "NOT_FOUND"))
    assert set(fake_org.problems()) == {"SRC042"}


def test_a_missing_channel_is_reported(fake_org: FakeOrg) -> None:
    fake_org.events.topics.pop(CHANNEL)
    assert set(fake_org.problems()) == {"SRC048"}


def test_a_channel_that_the_user_may_not_read_is_reported(fake_org: FakeOrg) -> None:
    fake_org.events.topics[CHANNEL] = False
    assert set(fake_org.problems()) == {"SRC048"}


def test_a_custom_channel_is_found_by_its_name_or_its_id(fake_org: FakeOrg) -> None:
    fake_org.events.topics = {CUSTOM: True}
    for channel in ("Sales", "Sales__chn", "0YLxx"):
        fake_org.members = [{**MEMBER, "Id": "0v8", "EventChannel": channel, "SelectedEntity": "AccountChangeEvent"}]
        assert fake_org.problems(task("Account"), channel=CUSTOM) == {}
    assert set(fake_org.problems(task("Invoice__c"), channel=CUSTOM)) == {"SRC050"}


def test_a_channel_of_one_object_carries_only_that_object(fake_org: FakeOrg) -> None:
    own = "/data/AccountChangeEvent"
    assert fake_org.problems(task("Account"), channel=own) == {}
    problem = fake_org.problems(task("Invoice__c"), channel=own)["SRC050"]
    assert CHANNEL in problem.do
    assert (single_entity(own), single_entity(CHANNEL), single_entity(CUSTOM)) == ("Account", "", "")


@pytest.mark.parametrize(("version", "found"), [("57.0", "SRC012"), ("99.0", "SRC012"), ("58.0", "")])
def test_the_api_version_must_be_served_and_have_result_pages(fake_org: FakeOrg, version: str, found: str) -> None:
    fake_org.rest.on("GET", "/services/data/", Answer([{"version": v} for v in ("57.0", "58.0", "66.0")]))
    for path in ("limits", "tooling/query", "sobjects/Account/describe"):
        reply = {"limits": Answer({}), "tooling/query": fake_org._tooling}.get(
            path, Answer(events.DESCRIBES["Account"])
        )
        fake_org.rest.on("GET", f"/services/data/v{version}/{path}", reply)
    assert set(fake_org.problems(task("Account"), api_version=version)) == ({found} if found else set())


def test_a_refused_login_is_a_problem_and_an_unreachable_org_an_error(fake_org: FakeOrg) -> None:
    fake_org.rest.on("POST", "/services/oauth2/token", Answer({"error": "invalid_client"}, 400))
    assert set(fake_org.problems()) == {"CON009"}
    fake_org.rest.on("POST", "/services/oauth2/token", Answer(b"", 503))
    with pytest.raises(SourceUnavailable, match="CON013"):
        fake_org.problems()


def test_case_27_an_org_is_identified_by_its_id_and_a_position_by_the_instance(fake_org: FakeOrg) -> None:
    row = {"Id": ORG, "InstanceName": "EU44"}
    fake_org.rest.on("GET", f"{ROOT}/queryAll", Answer({"done": True, "records": [row]}))
    org = fake_org.org()
    assert (org.identity(), org.instance) == ({"org_id": ORG}, "EU44")
    require_instance(ChannelPosition(b"x", instance="EU44"), org.instance, CHANNEL)
    with pytest.raises(PositionLost, match=r"SRC013.*EU44.*EU43"):
        require_instance(ChannelPosition(b"x", instance="EU43"), org.instance, CHANNEL)


def test_a_channel_without_members_carries_nothing() -> None:
    assert channel_facts(CHANNEL, [], []) == ChannelFacts()


@pytest.mark.parametrize("table", ["Account", "Invoice__c", "acme__Invoice__c", "AccountContactRelation"])
def test_the_name_of_an_event_leads_back_to_its_object(table: str) -> None:
    assert entity_of(event_name(table)) == table
