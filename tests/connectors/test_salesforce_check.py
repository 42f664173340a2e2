"""Every obstacle of an org is told at once, each with its cure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from airflow_cdc_provider.connectors.sources.salesforce.channels import ChannelFacts, channel_facts, single_entity
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
class World:
    """An org with Account and Invoice__c in its channel. ``tooling`` answers by the object that is asked for."""

    rest: HttpServer
    events: EventServer
    limits: dict[str, dict[str, int]] = field(default_factory=lambda: {"DailyApiRequests": {"Max": 9, "Remaining": 1}})
    members: list[dict[str, Any]] = field(
        default_factory=lambda: [{**MEMBER, "SelectedEntity": event_name(one)} for one in ("Account", "Invoice__c")]
    )

    def __post_init__(self) -> None:
        self.rest.on("GET", "/services/data/", Answer([{"version": "58.0"}, {"version": "66.0"}]))
        self.rest.on("GET", f"{ROOT}/limits", lambda asked: Answer(self.limits))
        for entity, answer in events.DESCRIBES.items():
            self.rest.on("GET", f"{ROOT}/sobjects/{entity}/describe", Answer(answer))
        self.rest.on("GET", f"{ROOT}/tooling/query", self._tooling)
        self.events.accepted = {f"token-{n}" for n in range(1, 9)}
        self.events.topics |= {"/data/AccountChangeEvent": True, "/data/Invoice__ChangeEvent": True}

    def _tooling(self, asked: Any) -> Answer:
        channels = [{"Id": "0YLxx", "DeveloperName": "Sales"}]
        members = "PlatformEventChannelMember" in asked.query["q"]
        return Answer({"done": True, "records": self.members if members else channels})

    def org(self, **options: Any) -> Org:
        extra = {"consumer_key": "k", "consumer_secret": "s3cret"}
        made = SalesforceOptions(
            login_url=self.rest.url, pubsub_endpoint=self.events.endpoint, pubsub_tls=False, **options
        )
        return Org(ConnectionInfo("crm", extra=extra), made, "crm")

    def problems(self, *tasks: TableTask, **options: Any) -> dict[str, Problem]:
        found = find_problems(self.org(**options), tasks or (task("Account"), task("Invoice__c")))
        assert all(problem.do for problem in found), "each has its cure"
        assert not any("s3cret" in str(problem) or "token-" in str(problem) for problem in found)
        assert len({(one.code, one.where) for one in found}) == len(found)
        return {problem.code: problem for problem in found}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with HttpServer() as rest, EventServer() as events:
        yield World(rest, events)


def test_an_org_that_is_ready_has_no_problems(world: World) -> None:
    assert world.problems() == {}


def test_all_problems_are_told_at_once(world: World) -> None:
    world.limits = {"DailyApiRequests": {"Max": 9, "Remaining": 0}}
    world.members[0]["FilterExpression"] = "Type = 'Customer'"
    world.events.topics["/data/Invoice__ChangeEvent"] = False
    rule = {"where": (Condition("Type", Comparison.EQUAL, "x"),), "key": ("Name",)}
    found = world.problems(task("Account", **rule), task("Invoice__c"), task("Contact"), api_version="66.0")
    assert set(found) == {"SRC040", "SRC051", "SRC055", "SRC016", "SRC018", "SRC050"}


def test_case_31_an_object_that_the_channel_would_leave_out_in_silence_is_found(world: World) -> None:
    world.events.topics["/data/AccountChangeEvent"] = False
    (problem,) = world.problems().values()
    assert (problem.code, problem.where) == ("SRC055", "Account")
    assert "View All Records" in problem.allowed


def test_case_31_an_object_that_is_no_member_is_found(world: World) -> None:
    (problem,) = world.problems(task("Contact")).values()
    assert (problem.code, problem.where) == ("SRC050", "Contact") and "Change Data Capture" in problem.do


def test_case_32_a_member_with_a_filter_is_refused_with_its_filter(world: World) -> None:
    world.members[0]["FilterExpression"] = "Type = 'Customer'"
    (problem,) = world.problems().values()
    assert (problem.code, problem.where) == ("SRC051", "Account") and "Type = 'Customer'" in problem.found


def test_case_32_members_that_cannot_be_seen_are_a_problem_themselves(world: World) -> None:
    world.rest.on("GET", f"{ROOT}/tooling/query", refused(403, "INSUFFICIENT_ACCESS"))
    (problem,) = world.problems().values()
    assert problem.code == "SRC052" and "View Setup" in problem.do


def test_case_30_used_up_deliveries_are_told_before_a_run_needs_them(world: World) -> None:
    world.limits["DailyDeliveredPlatformEvents"] = {"Max": 25_000, "Remaining": 0}
    (problem,) = world.problems().values()
    assert problem.code == "SRC041" and "0 of 25000 left" in problem.found


def test_case_50_a_column_that_the_user_no_longer_sees_is_told_before_it_turns_null(world: World) -> None:
    held = events.described_as("Account").schema
    visible = [one for one in events.DESCRIBES["Account"]["fields"] if one["name"] not in ("Phone", "Fax")]
    world.rest.on("GET", f"{ROOT}/sobjects/Account/describe", Answer({"name": "Account", "fields": visible}))
    (problem,) = world.problems(task("Account", held)).values()
    assert (problem.code, problem.found) == ("SRC054", "Phone, Fax")


def test_case_57_an_object_that_cannot_be_queried_is_refused(world: World) -> None:
    answer = {**events.DESCRIBES["Invoice__c"], "queryable": False}
    world.rest.on("GET", f"{ROOT}/sobjects/Invoice__c/describe", Answer(answer))
    assert set(world.problems()) == {"SRC053"}


def test_an_object_that_is_not_there_is_told(world: World) -> None:
    world.rest.on("GET", f"{ROOT}/sobjects/Invoice__c/describe", refused(404, "NOT_FOUND"))
    assert set(world.problems()) == {"SRC042"}


def test_a_channel_that_is_not_there_is_told(world: World) -> None:
    world.events.topics.pop(CHANNEL)
    assert set(world.problems()) == {"SRC048"}


def test_a_channel_that_the_user_may_not_read_is_told(world: World) -> None:
    world.events.topics[CHANNEL] = False
    assert set(world.problems()) == {"SRC048"}


def test_a_custom_channel_is_known_by_its_name_or_its_id(world: World) -> None:
    world.events.topics = {CUSTOM: True}
    for channel in ("Sales", "Sales__chn", "0YLxx"):
        world.members = [{**MEMBER, "EventChannel": channel, "SelectedEntity": "AccountChangeEvent"}]
        assert world.problems(task("Account"), channel=CUSTOM) == {}
    assert set(world.problems(task("Invoice__c"), channel=CUSTOM)) == {"SRC050"}


def test_a_channel_of_one_object_carries_that_object_only(world: World) -> None:
    own = "/data/AccountChangeEvent"
    assert world.problems(task("Account"), channel=own) == {}
    problem = world.problems(task("Invoice__c"), channel=own)["SRC050"]
    assert CHANNEL in problem.do
    assert (single_entity(own), single_entity(CHANNEL), single_entity(CUSTOM)) == ("Account", "", "")


@pytest.mark.parametrize(("version", "found"), [("57.0", "SRC012"), ("99.0", "SRC012"), ("58.0", "")])
def test_the_api_version_must_be_served_and_know_result_pages(world: World, version: str, found: str) -> None:
    world.rest.on("GET", "/services/data/", Answer([{"version": v} for v in ("57.0", "58.0", "66.0")]))
    for path in ("limits", "tooling/query", "sobjects/Account/describe"):
        reply = {"limits": Answer({}), "tooling/query": world._tooling}.get(path, Answer(events.DESCRIBES["Account"]))
        world.rest.on("GET", f"/services/data/v{version}/{path}", reply)
    assert set(world.problems(task("Account"), api_version=version)) == ({found} if found else set())


def test_a_refused_login_is_a_problem_and_an_org_out_of_reach_an_error(world: World) -> None:
    world.rest.on("POST", "/services/oauth2/token", Answer({"error": "invalid_client"}, 400))
    assert set(world.problems()) == {"CON009"}
    world.rest.on("POST", "/services/oauth2/token", Answer(b"", 503))
    with pytest.raises(SourceUnavailable, match="CON013"):
        world.problems()


def test_case_27_an_org_is_known_by_its_id_and_a_position_by_the_instance_it_lived_on(world: World) -> None:
    row = {"Id": ORG, "InstanceName": "EU44"}
    world.rest.on("GET", f"{ROOT}/query", Answer({"done": True, "records": [row]}))
    org = world.org()
    assert (org.identity(), org.instance) == ({"org_id": ORG}, "EU44")
    require_instance(ChannelPosition(b"x", instance="EU44"), org.instance, CHANNEL)
    with pytest.raises(PositionLost, match=r"SRC013.*EU44.*EU43"):
        require_instance(ChannelPosition(b"x", instance="EU43"), org.instance, CHANNEL)


def test_a_channel_without_members_carries_nothing() -> None:
    assert channel_facts(CHANNEL, [], []) == ChannelFacts()


@pytest.mark.parametrize("table", ["Account", "Invoice__c", "acme__Invoice__c", "AccountContactRelation"])
def test_the_name_of_an_objects_event_leads_back_to_the_object(table: str) -> None:
    assert entity_of(event_name(table)) == table
