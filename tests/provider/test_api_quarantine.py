"""Records in quarantine by the REST API: who sees their values, and who decides about them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from tests.provider.api_client import ApiClient, add_dags, api_client
from tests.provider.bad_records import TABLE, with_bad_records
from tests.provider.command_line import CommandLine
from tests.provider.run_harness import RunHarness

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx` with")

QUARANTINE = "/replicators/shop/quarantine"


@pytest.fixture
def api(metadata_database: None, cdc: CommandLine, harness: RunHarness) -> Iterator[ApiClient]:
    add_dags(["shop"])
    with_bad_records(harness)
    client = api_client()
    with client.http:
        yield client


def test_a_viewer_sees_the_records_and_only_an_editor_their_values(api: ApiClient, harness: RunHarness) -> None:
    records = api.get(QUARANTINE).json()["records"]
    assert [(one["id"], one["parked"]) for one in records] == [("one", 2), ("two", 2)] and "raw" not in records[0]
    first = api.get(QUARANTINE, params={"limit": 1}).json()
    second = api.get(QUARANTINE, params={"limit": 1, "cursor": first["next_cursor"]}).json()
    assert (first["records"], second["records"], second["next_cursor"]) == (records[:1], records[1:], None)
    assert api.get(QUARANTINE, params={"table": "public.b"}).json()["records"] == []
    assert api.get(f"{QUARANTINE}/one").status_code == 403
    shown = api.get(f"{QUARANTINE}/one", role="user").json()
    assert shown["raw"] and shown["record"]["table"] == TABLE
    (entry,) = harness.state.audit("shop", 1)
    assert (entry.action, entry.actor, entry.detail["record"]) == ("quarantine show", "user-name", "one")
    assert api.get(f"{QUARANTINE}/three", role="user").status_code == 404


def test_a_decision_is_written_once_and_left_to_the_next_run(api: ApiClient, harness: RunHarness) -> None:
    body = {"decision": "replay", "records": ["one"], "values": {"name": "2026-01-01"}, "reason": "wrong date"}
    first, again = (api.post(QUARANTINE, body, key="the-same-key").json() for _ in range(2))
    assert first["command"]["id"] == again["command"]["id"] and first["records"] == ["one"]
    (decision,) = harness.replicator.log.decisions()
    assert (decision.record, decision.values, decision.decided_by) == ("one", {"name": "2026-01-01"}, "user-name")
    (command,) = harness.state.pending("shop")
    assert (command.kind, command.status) == (CommandKind.REPLAY, CommandStatus.PENDING)


def test_records_are_discarded_only_with_the_name_of_the_replicator(api: ApiClient, harness: RunHarness) -> None:
    body = {"decision": "discard", "tables": [TABLE], "reason": "not needed"}
    assert api.post(QUARANTINE, body).json()["problems"][0]["code"] == "CMD032"
    assert harness.replicator.log.decisions() == []
    assert api.post(QUARANTINE, body | {"confirm": "shop"}).json()["records"] == ["one", "two"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"decision": "replay"}, "CLI013"),
        ({"decision": "replay", "records": ["one", "two"], "values": {"name": "x"}}, "CLI012"),
        ({"decision": "replay", "records": ["one"], "values": {"colour": "x"}}, "CLI016"),
        ({"decision": "replay", "records": ["three"]}, "CLI015"),
        ({"decision": "replay", "records": ["one"], "values": {"id": "7.5"}}, "CLI025"),
        ({"decision": "replay", "records": ["one"], "values": {"id": None}}, "CLI025"),
        ({"decision": "replay", "tables": ["public.z"]}, "API002"),
    ],
)
def test_a_decision_that_is_not_clear_is_refused(
    api: ApiClient, harness: RunHarness, body: dict[str, object], code: str
) -> None:
    answer = api.post(QUARANTINE, body)
    assert answer.json()["problems"][0]["code"] == code and harness.replicator.log.decisions() == []


@pytest.mark.parametrize("value", [9007199254740993, 1.5, True, ["a"], {"a": 1}])
def test_a_value_is_a_text_or_null(api: ApiClient, harness: RunHarness, value: object) -> None:
    """Numbers of JSON are rounded by those who read and write them."""
    answer = api.post(QUARANTINE, {"decision": "replay", "records": ["one"], "values": {"id": value}})
    assert answer.status_code == 422 and "values.id" in answer.json()["problems"][0]["where"]
    assert harness.replicator.log.decisions() == []


def test_a_repeated_request_with_a_key_has_the_same_values(api: ApiClient, harness: RunHarness) -> None:
    body = {"decision": "replay", "records": ["one"], "values": {"id": "7", "name": None}}
    first, again = (api.post(QUARANTINE, body, key="the-same-key").json() for _ in range(2))
    assert first["command"]["id"] == again["command"]["id"]
    (decision,) = harness.replicator.log.decisions()
    assert decision.values == {"id": 7, "name": None}
    other = api.post(QUARANTINE, body | {"values": {"id": "8", "name": None}}, key="the-same-key")
    assert other.json()["problems"][0]["code"] == "CMD002"
