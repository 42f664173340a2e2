"""The REST API: who may use which route, what the routes answer, and what they refuse."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.api_fastapi.app import get_auth_manager
from airflow.utils.state import DagRunState
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from airflow_cdc_provider.core.decisions.commands import CommandKind
from airflow_cdc_provider.core.decisions.replicator_changes import ReplicatorEntry
from airflow_cdc_provider.core.log.change_log import Hole
from airflow_cdc_provider.core.times import utc_text
from airflow_cdc_provider.ui import access
from airflow_cdc_provider.ui.access import GUARDS, OF_A_REPLICATOR
from airflow_cdc_provider.ui.app import create_app
from airflow_cdc_provider.ui.rate import Rate
from airflow_cdc_provider.ui.responses import MAX_BODY_BYTES
from tests.provider.api_client import ANONYMOUS, ROLES, ApiClient, add_dags, api_client, set_runs
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx` with")

COMMANDS = "/replicators/shop/commands"
PAUSE_A = {"kind": "pause", "tables": ["public.a"]}


@pytest.fixture
def api(metadata_database: None, cdc: CommandLine, harness: RunHarness) -> Iterator[ApiClient]:
    add_dags(["shop", "never_run"])
    replicated(harness)
    client = api_client()
    with client.http:
        yield client


def routes() -> list[APIRoute]:
    return [route for route in create_app().routes if isinstance(route, APIRoute)]


def guards(dependant: Dependant) -> Iterator[Any]:
    yield dependant.call
    for one in dependant.dependencies:
        yield from guards(one)


def path_of(route: APIRoute) -> str:
    values = {"replicator": "shop", "table:path": "public.a", "command_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12}
    values |= {"question_id": "q", "record": "one", "file": "page.js"}
    path = route.path
    for name, value in values.items():
        path = path.replace("{" + name + "}", value)
    return path


def body_for(method: str) -> dict[str, str] | None:
    """With the fields of all routes."""
    return None if method == "GET" else {"kind": "pause", "answer": "leave", "decision": "replay", "yaml": ""}


def test_every_route_has_a_guard_and_refuses_who_may_not(api: ApiClient) -> None:
    """Viewers read, users who may edit the DAG command it, and a request without a login is refused."""
    for route in routes():
        (method,) = route.methods
        used, name = set(guards(route.dependant)), f"{method} {route.path}"
        assert set(GUARDS) & used, f"{name}: a route without a guard"
        assert "{replicator}" not in route.path or set(OF_A_REPLICATOR) & used, f"{name}: a login alone is no right"
        statuses = {}
        for role in (ANONYMOUS, *ROLES):
            headers = api.headers(role) | {"Idempotency-Key": f"key-of-{role}"}
            answer = api.http.request(method, path_of(route), json=body_for(method), headers=headers)
            statuses[role] = answer.status_code
        assert 500 not in statuses.values(), name
        assert statuses.pop(ANONYMOUS) == 401, name
        if {access.editable, access.readable_with_values} & used:
            assert statuses.pop("viewer") == 403, name
        assert not {401, 403} & set(statuses.values()), name


def test_a_replicator_whose_dag_the_user_may_not_read_is_on_no_route(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(get_auth_manager()), "is_authorized_dag", lambda *_, **__: False)
    headers = api.headers("admin") | {"Idempotency-Key": "key-of-admin"}
    for route in routes():
        if "{replicator}" in route.path:
            (method,) = route.methods
            answer = api.http.request(method, path_of(route), json=body_for(method), headers=headers)
            assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (404, "API008"), route.path


def test_every_route_is_one_of_those_that_are_tested() -> None:
    """Not a mounted application, or a route without the dependencies of FastAPI."""
    assert [route for route in create_app().routes if not isinstance(route, APIRoute)] == []


def test_every_route_that_changes_something_needs_the_right_to_edit() -> None:
    changing = [route for route in routes() if route.methods != {"GET"}]
    assert changing and all(access.editable in set(guards(route.dependant)) for route in changing)


def test_replicators_are_listed_with_what_a_run_has_seen(api: ApiClient) -> None:
    (one,) = api.get("/replicators").json()["replicators"]
    assert (one["name"], one["source"], one["tables"], one["states"]) == ("shop", "file", 2, {"replicating": 2})
    assert one["rows"] == 20 and one["late"] is False and one["lag_s"] >= 0 and one["questions"] == 0
    whole = api.get("/replicators/shop").json()
    assert whole["definition"]["source"]["connection"] == "shop_db" and whole["pending"] == []
    assert "geheim" not in api.get("/replicators/shop").text


def test_replicators_that_no_run_has_registered_are_listed_apart(api: ApiClient) -> None:
    add_dags(["later"], paused=True)
    body = api.get("/replicators").json()
    assert [one["name"] for one in body["replicators"]] == ["shop"]
    assert body["not_run"] == [{"name": "later", "paused": True}, {"name": "never_run", "paused": False}]
    assert [one["name"] for one in api.get("/replicators?search=lat").json()["not_run"]] == ["later"]
    assert api.get("/replicators?search=%25").json()["not_run"] == []


def test_a_replicator_whose_dag_the_user_may_not_read_is_not_listed(api: ApiClient, harness: RunHarness) -> None:
    definition = harness.replicator.definition

    harness.state.replicators.change(
        "other", lambda _: ReplicatorEntry(replace(definition, name="other"), "2026-01-01")
    )
    assert [one["name"] for one in api.get("/replicators").json()["replicators"]] == ["shop"]


def test_tables_have_the_fields_of_status_and_a_page_at_a_time(api: ApiClient, cdc: CommandLine) -> None:
    first = api.get("/replicators/shop/tables", params={"limit": 1}).json()
    assert [row["table"] for row in first["tables"]] == ["public.a"] and first["next_cursor"]
    second = api.get("/replicators/shop/tables", params={"limit": 1, "cursor": first["next_cursor"]}).json()
    assert [row["table"] for row in second["tables"]] == ["public.b"] and second["next_cursor"] is None
    shown = cdc("status", "shop", "--json").body["tables"]
    for row, by_command in zip([*first["tables"], *second["tables"]], shown, strict=True):
        assert {**row, "lag_s": 0} == {name: 0 if name == "lag_s" else by_command[name] for name in row}
    table = api.get("/replicators/shop/tables/public.a").json()
    assert table["schema"]["table"] == "public.a" and table["table_state"]["name"] == "replicating"
    assert [one["state"] for one in table["history"]] == ["snapshotting", "replicating"]
    assert table["asset"]["name"] == "cdc/shop/public_a" and table["cost"]["rows"] == 10 and table["costs"]
    assert api.get("/replicators/shop/tables", params={"cursor": "§"}).status_code == 422


def test_positions_are_those_that_the_last_run_has_seen(api: ApiClient, cdc: CommandLine, harness: RunHarness) -> None:
    """Also while the source does not answer."""
    harness.source.change("public.a")
    assert harness.run("r2").problems == ()
    harness.source.change("public.b")
    harness.source.write(up=False)
    positions = api.get("/replicators/shop").json()["positions"]
    source = positions["source"]
    assert (source["end"], source["read"], source["confirmed"]) == ({"slot": "101"},) * 3
    assert source["end_at"] <= source["confirmed_at"] and source["window"] == 2
    assert {name: one["window"] for name, one in positions["cursors"].items()} == {"public.a": 2, "public.b": 1}
    assert [one["position"] for one in positions["windows"]] == [{"slot": "100"}, {"slot": "101"}]
    table = api.get("/replicators/shop/tables/public.a").json()
    assert table["cursor"] == positions["cursors"]["public.a"] | {"position": {"slot": "101"}}
    assert cdc("status", "shop", "--json").body["positions"] == {"shop": positions}


def test_what_is_not_there_is_a_problem_in_the_form_of_rfc_9457(api: ApiClient) -> None:
    for path, code in (("/replicators/never_run", "API001"), ("/replicators/shop/tables/public.z", "API002")):
        answer = api.get(path)
        assert answer.status_code == 404 and answer.headers["Content-Type"] == "application/problem+json"
        body = answer.json()
        assert body["type"] == f"urn:airflow-cdc-provider:problem:{code}" and body["status"] == 404
        assert body["title"] and body["problems"][0]["do"]


def test_an_answer_that_the_client_has_is_not_sent_again(api: ApiClient) -> None:
    first = api.get("/replicators/shop/audit")
    again = api.http.get(
        "/api/v1/replicators/shop/audit", headers=api.headers("viewer") | {"If-None-Match": first.headers["ETag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/replicators", "/replicators/shop", "/replicators/shop/tables", "/replicators/shop/tables/public.a"]
)
def test_time_alone_does_not_change_an_answer_but_a_change_of_the_state_does(
    api: ApiClient, harness: RunHarness, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """``late`` is a change: a client that waits for it learns of it."""
    start = datetime.now(UTC).replace(minute=1, second=0, microsecond=0)

    def pass_time(seconds: float) -> None:
        monkeypatch.setattr("airflow_cdc_provider.state.store.now", lambda connection: start.timestamp() + seconds)

    def again() -> int:
        tag = {"If-None-Match": first.headers["ETag"]}
        return int(api.http.get(f"/api/v1{path}", headers=api.headers("viewer") | tag).status_code)

    known = {"fresh_at": utc_text(start - timedelta(seconds=3590)), "clock_ahead_s": 0.0}
    harness.state.change_tables("shop", lambda rows: [replace(row, **known) for row in rows.values()])
    pass_time(0)
    first = api.get(path)
    pass_time(5)
    assert again() == 304 and '"lag_s":3595.0' in api.get(path).text, "a body has the lag as of now"
    pass_time(15)
    assert again() == 200, "late"
    pass_time(0)
    assert again() == 304
    api.post(COMMANDS, PAUSE_A)
    assert again() == 200


def test_a_pause_is_carried_out_once_for_one_key_and_audited(api: ApiClient, harness: RunHarness) -> None:
    key = "a-key-of-the-page"
    one, again = (api.post(COMMANDS, PAUSE_A, key=key) for _ in range(2))
    assert (one.status_code, one.json()["status"]) == (202, "done") and again.json()["id"] == one.json()["id"]
    assert api.get("/replicators/shop/tables/public.a").json()["state"] == "paused"
    assert api.get("/replicators").json()["replicators"][0]["states"] == {"paused": 1, "replicating": 1}
    command = harness.state.command(one.json()["id"])
    assert command is not None and (command.kind, command.requested_by) == (CommandKind.PAUSE, "user-name")
    other = api.post(COMMANDS, PAUSE_A | {"tables": ["public.b"]}, key=key)
    assert (other.status_code, other.json()["problems"][0]["code"]) == (422, "CMD002")
    listed = api.get(COMMANDS).json()["commands"]
    assert [item["id"] for item in listed] == [command.id]
    assert api.get(f"{COMMANDS}/{command.id}").json()["outcome"] == command.outcome
    assert api.post(COMMANDS, {"kind": "resume", "tables": []}).json()["status"] == "done"
    assert api.get("/replicators").json()["replicators"][0]["states"] == {"replicating": 2}


@pytest.mark.parametrize("kind", ["resync", "rewind"])
def test_a_command_that_can_remove_rows_needs_the_name_of_the_replicator(api: ApiClient, kind: str) -> None:
    body = {"kind": kind, "tables": ["public.a"], "to": "1"}
    for confirm in ("", "Shop"):
        refused = api.post(COMMANDS, body | {"confirm": confirm}, **{"If-Match": "*"})
        assert (refused.status_code, refused.json()["problems"][0]["code"]) == (409, "CMD032")
    assert api.get(COMMANDS).json()["commands"] == []
    assert api.post(COMMANDS, body | {"confirm": "shop"}, **{"If-Match": "*"}).status_code == 202


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "delete"}, 422),
        ({"kind": "pause", "table": "public.a"}, 422),
        ({"kind": "pause", "tables": ["public.z"]}, 404),
        ({"kind": "pause", "tables": "public.a"}, 422),
        ({"kind": "pause", "reason": "x" * MAX_BODY_BYTES}, 413),
    ],
    ids=["kind", "unknown field", "table", "type", "size"],
)
def test_a_bad_request_changes_nothing(api: ApiClient, body: dict[str, Any], status: int) -> None:
    answer = api.post(COMMANDS, body)
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json")
    assert answer.json()["status"] == status and api.get(COMMANDS).json()["commands"] == []


def test_a_request_that_another_origin_could_send_is_refused(api: ApiClient) -> None:
    assert api.post(COMMANDS, PAUSE_A, key="").status_code == 428
    assert api.post(COMMANDS, PAUSE_A, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert api.post(COMMANDS, PAUSE_A, **{"Sec-Fetch-Site": "same-origin"}).status_code == 202
    for header in ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy"):
        assert header in api.get("/replicators").headers
    assert "access-control-allow-origin" not in api.get("/replicators").headers


def test_one_user_who_changes_too_often_waits(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "CHANGES", Rate(2, "changes"))
    answers = [api.post(COMMANDS, {"kind": "delete"}).status_code for _ in range(3)]
    assert answers == [422, 422, 429]
    limited = api.post(COMMANDS, PAUSE_A)
    assert 1 <= int(limited.headers["Retry-After"]) <= 61 and limited.json()["status"] == 429
    assert api.post(COMMANDS, PAUSE_A, role="op").status_code == 202


def test_one_user_who_asks_the_source_too_often_waits(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "LIVE_READS", Rate(2, "requests that ask a source"))
    paths = ("/replicators/shop/plan", "/replicators/shop/assessment", "/replicators/shop/plan")
    assert [api.get(path).status_code for path in paths] == [200, 200, 429]
    assert api.get("/replicators/shop").status_code == 200
    assert api.get("/replicators/shop/plan", role="op").status_code == 200


def test_one_key_is_one_run(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    triggered = []
    monkeypatch.setattr(
        "airflow_cdc_provider.hooks.dag_runs.trigger_dag", lambda *_, **run: triggered.append(run["run_id"])
    )
    first, again = (api.post("/replicators/shop/runs", None, key="the-same-key") for _ in range(2))
    assert first.json() == again.json() and set(triggered) == {first.json()["run_id"]}


def test_columns_are_shown_with_their_types_on_both_sides(api: ApiClient) -> None:
    body = api.get("/replicators/shop/columns/public.a").json()
    assert (body["source"]["table"], body["target"]["table"]) == ("public.a", "public_a")
    first = body["columns"][0]
    assert (first["name"], first["source"], first["key"], first["masked"]) == ("id", "id", True, False)
    assert first["source_type"] and first["target_type"]
    assert api.get("/replicators/shop/columns/public.zz").status_code == 404


def test_runs_are_those_of_airflow_newest_first(api: ApiClient) -> None:
    start, took = datetime(2026, 11, 27, 12, tzinfo=UTC), timedelta(seconds=30)
    states = (DagRunState.FAILED, DagRunState.SUCCESS, DagRunState.SUCCESS)
    set_runs("shop", [(f"r{n}", state, start + timedelta(minutes=n), took) for n, state in enumerate(states)])
    found = api.get("/replicators/shop/runs", params={"limit": 2}).json()["runs"]
    assert [one["run_id"] for one in found] == ["r2", "r1"]
    assert found[0] == {
        "run_id": "r2",
        "kind": "scheduled",
        "state": "success",
        "started_at": "2026-11-27T12:02:00.000+00:00",
        "ended_at": "2026-11-27T12:02:30.000+00:00",
    }


def test_the_changes_of_the_last_day_are_a_series_of_half_hours(api: ApiClient, harness: RunHarness) -> None:
    harness.source.change("public.a")
    harness.run("r2")
    (one,) = api.get("/replicators").json()["replicators"]
    assert len(one["changes_24h"]) == 48 and sum(one["changes_24h"]) == 1
    tables = api.get("/replicators/shop/tables").json()["tables"]
    assert [sum(table["changes_24h"]) for table in tables] == [1, 0]


def test_a_replicator_says_whether_the_user_may_command_it(api: ApiClient) -> None:
    found = {role: api.get("/replicators/shop", role).json()["may_edit"] for role in ROLES}
    assert found == {"viewer": False, "user": True, "op": True, "admin": True}


def test_what_happened_is_shown_a_page_at_a_time_newest_first(api: ApiClient, harness: RunHarness) -> None:
    for number in range(3):
        harness.source.change("public.a")
        harness.run(f"r{number + 2}")
        harness.state.write_audit("shop", "ada", f"action {number}", {})
    harness.state.write_audit("other", "ada", "of another replicator", {})
    newest = harness.replicator.log.sealed()
    assert [one["window"] for one in pages(api, "windows", "windows")] == list(range(newest, 0, -1))
    actions = [one["action"] for one in pages(api, "audit", "entries")]
    assert actions[0] == "action 2" and len(actions) == len(harness.state.audit("shop", 1000))
    for kind in ("pause", "resume", "pause"):
        assert api.post(COMMANDS, {**PAUSE_A, "kind": kind}).status_code == 202
    commands = [one["kind"] for one in pages(api, "commands", "commands")]
    assert commands == ["pause", "resume", "pause"]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    set_runs("shop", [(f"r{n}", DagRunState.SUCCESS, start, timedelta(minutes=1)) for n in range(5)])
    assert [one["run_id"] for one in pages(api, "runs", "runs")] == ["r4", "r3", "r2", "r1", "r0"]
    for route in ("windows", "audit"):
        wrong = base64.b64encode(b"no number").decode()
        assert api.get(f"/replicators/shop/{route}", params={"cursor": wrong}).status_code == 422


def pages(api: ApiClient, route: str, name: str) -> list[dict[str, Any]]:
    """The items of all pages of two."""
    found: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = api.get(f"/replicators/shop/{route}", params={"limit": 2, "cursor": cursor}).json()
        assert 1 <= len(answer[name]) <= 2
        found, cursor = found + answer[name], answer["next_cursor"]
    return found


def test_a_hole_is_open_until_every_copy_of_its_table_was_made_again(api: ApiClient, harness: RunHarness) -> None:
    log, hole = harness.replicator.log, Hole("gap", "public.a", "", detail="event 7 is missing")
    harness.source.change("public.a")
    plan = harness.open("r2").plan
    harness.extract(plan, holes=(hole,))
    harness.close("r2")
    (shown,) = api.get("/replicators/shop/windows").json()["windows"][0]["holes"]
    assert shown == {"table": "public.a", "cause": "gap", "detail": "event 7 is missing", "open": True}
    control = harness.control("public.a")
    harness.commit("public_a", replace(control, window=log.sealed(), fence=control.fence + 1))
    harness.run("r3")
    (shown,) = api.get("/replicators/shop/windows").json()["windows"][0]["holes"]
    assert shown["open"] is False
