"""What the API refuses, and that a refusal has a status, the form of a problem, no secret, and no effect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from httpx import Response

from airflow_cdc_provider.core.errors import StateUnavailable
from airflow_cdc_provider.state.store import StateStore
from airflow_cdc_provider.ui import access
from airflow_cdc_provider.ui.app import API
from airflow_cdc_provider.ui.rate import Rate
from airflow_cdc_provider.ui.responses import MAX_BODY_BYTES
from airflow_cdc_provider.ui.routes import commands, replicators
from tests.provider.api_client import ApiClient, add_dags, api_client
from tests.provider.bad_records import put_aside
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness

pytestmark = pytest.mark.filterwarnings("ignore:Using `httpx` with")

COMMANDS = "/replicators/shop/commands"
PAUSE_A = {"kind": "pause", "tables": ["public.a"]}
REWIND_A = {"kind": "rewind", "tables": ["public.a"], "to": "1", "confirm": "shop"}
ANY_VERSION = {"If-Match": "*"}


@pytest.fixture
def api(metadata_database: None, cdc: CommandLine, harness: RunHarness) -> Iterator[ApiClient]:
    add_dags(["shop", "never_run"])
    replicated(harness)
    client = api_client()
    with client.http:
        yield client


def sent(api: ApiClient, content: bytes, **headers: str) -> Response:
    """A command with any body."""
    basic = api.headers("user") | {"Idempotency-Key": "k" * 8, "Content-Type": "application/json"}
    return api.http.post(f"{API}{COMMANDS}", content=content, headers=basic | headers)


def require_problem(answer: Response, status: int) -> Any:
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/problem+json"), answer.text
    body = answer.json()
    assert body["status"] == status and body["title"] and "Traceback" not in answer.text
    assert "geheim" not in answer.text
    return body


def require_unchanged(api: ApiClient) -> None:
    assert api.get(COMMANDS).json()["commands"] == []
    assert api.get("/replicators/shop").json()["states"] == {"replicating": 2}


def test_a_missing_expired_or_garbled_token_has_the_same_answer(api: ApiClient) -> None:
    user = SimpleAuthManagerUser(username="user-name", role="USER")
    expired = get_auth_manager().generate_jwt(user, expiration_time_in_seconds=-60)
    tokens = [None, expired, "garbled", api.tokens["user"] + "x", ""]
    for path in ("/replicators", "/replicators/shop", "/replicators/never_run", "/openapi.json"):
        answers = [api.http.get(f"{API}{path}", headers=bearer(token)) for token in tokens]
        assert len({answer.text for answer in answers}) == 1
        assert all(require_problem(answer, 401)["detail"] == "" for answer in answers)


def bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def test_a_replicator_whose_dag_the_user_may_not_read_is_not_found_as_one_that_does_not_exist(
    api: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = get_auth_manager()
    may = manager.is_authorized_dag
    monkeypatch.setattr(
        manager, "is_authorized_dag", lambda *, details, **rest: details.id == "readable" and may(**rest)
    )
    for method, path in (("GET", ""), ("GET", "/tables"), ("POST", "/commands"), ("GET", "/quarantine/one")):
        headers = api.headers("admin") | {"Idempotency-Key": "k" * 8}
        answers = [
            api.http.request(method, f"{API}/replicators/{name}{path}", headers=headers, json=None)
            for name in ("shop", "other")
        ]
        first, second = (require_problem(answer, 404) for answer in answers)
        assert json.dumps(first).replace("shop", "other") == json.dumps(second)


def test_one_who_may_read_the_dag_and_not_edit_it_is_forbidden(api: ApiClient) -> None:
    require_problem(api.post(COMMANDS, PAUSE_A, role="viewer"), 403)
    require_unchanged(api)


def test_an_unknown_field_is_named_without_its_value(api: ApiClient) -> None:
    answer = api.post(COMMANDS, PAUSE_A | {"pasword": "geheim"})
    assert require_problem(answer, 422)["problems"][0]["where"] == "body.pasword"
    require_unchanged(api)


def test_a_body_is_json(api: ApiClient) -> None:
    body = json.dumps(PAUSE_A).encode()
    for other in ("application/xml", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        require_problem(sent(api, body, **{"Content-Type": other}), 415)
    require_unchanged(api)
    for same in ("application/json; charset=utf-8", "Application/JSON"):
        assert sent(api, body, **{"Content-Type": same}).status_code == 202


def test_a_body_without_a_bound_is_refused_before_it_is_read(api: ApiClient) -> None:
    require_problem(sent(api, b"x" * 10_000_000), 413)
    require_problem(sent(api, b"{}", **{"Transfer-Encoding": "chunked"}), 411)
    require_problem(sent(api, b"{}", **{"Content-Length": "-1"}), 411)
    require_unchanged(api)


def test_a_deep_body_is_refused(api: ApiClient) -> None:
    headers = api.headers("user") | {"Idempotency-Key": "k" * 8, "Content-Type": "application/json"}
    for depth in (500, 10_000, MAX_BODY_BYTES // 2 - 40):
        deep = "[" * depth + "]" * depth
        for path, start, end in (
            ("commands", '{"kind": "pause", "tables": ', "}"),
            ("quarantine", '{"decision": "replay", "records": ["r"], "values": {"v": ', "}}"),
            ("drafts", '{"yaml": "', '"}'),
        ):
            body = f"{start}{deep}{end}".encode()
            answer = api.http.post(f"{API}/replicators/shop/{path}", content=body, headers=headers)
            problem = require_problem(answer, answer.status_code)["problems"][0]
            assert answer.status_code == 422 or (depth == 500 and problem["code"] == "CLI015")
    require_unchanged(api)


def test_a_body_that_is_no_object_is_refused(api: ApiClient) -> None:
    for body in (b"", b"{", b"null", b"[]", b"\xff", b'{"kind": NaN}', b'{"kind": "pause"'):
        require_problem(sent(api, body), 422)
    require_unchanged(api)


def test_a_page_that_does_not_exist_is_refused(api: ApiClient) -> None:
    """``YQBi``: a NUL, which PostgreSQL does not take."""
    cursors = ("cursor=forged", "cursor=%C2%A7", "cursor=YQBi")
    for path in ("/replicators", "/replicators/shop/tables"):
        for query in ("limit=-1", "limit=0", "limit=1000000000", "limit=x", *cursors):
            require_problem(api.get(f"{path}?{query}"), 422)


def test_an_odd_name_is_not_found_or_refused(api: ApiClient) -> None:
    names = ["~", "%2e%2e", "%2E%2E%2Fshop", "%0d%0aX: y", "x" * 5000, "%F0%9F%90%98", "%ff", "' OR 1=1 --"]
    for folder in ("", "shop/tables/", "shop/commands/", "shop/quarantine/"):
        for name in names:
            answer = api.get(f"/replicators/{folder}{name}", role="admin")
            assert answer.status_code in (404, 422), (folder, name)
            require_problem(answer, answer.status_code)
        require_problem(api.get(f"/replicators/{folder}a%00", role="admin"), 422)


def test_the_id_of_a_record_names_no_other_file(api: ApiClient, harness: RunHarness) -> None:
    """Those of another table, for example."""
    put_aside(harness, "one")
    for table in ("public.a", "public.b"):
        body = {"decision": "replay", "records": [f"../{table}/one"]}
        assert require_problem(api.post("/replicators/shop/quarantine", body), 404)["problems"][0]["code"] == "CLI015"


def test_a_second_pause_or_resume_changes_nothing(api: ApiClient, harness: RunHarness) -> None:
    assert api.post(COMMANDS, {"kind": "resume"}).json()["outcome"] == "resume: nothing to change"
    assert api.post(COMMANDS, PAUSE_A).json()["outcome"] == "pause: public.a"
    fence, audit = harness.control("public.a").fence, harness.state.audit("shop", 100)
    again = api.post(COMMANDS, PAUSE_A)
    assert (again.status_code, again.json()["outcome"]) == (202, "pause: nothing to change")
    assert (harness.control("public.a").fence, harness.state.audit("shop", 100)) == (fence, audit)


def test_a_rewind_beside_a_run_fences_its_commits(api: ApiClient, harness: RunHarness) -> None:
    """It needs no pause, so it is not refused."""
    harness.source.change("public.a")
    harness.run("r2")
    harness.source.change("public.a")
    plan = harness.open("r3").plan
    before = harness.control("public.a")
    done = api.post(COMMANDS, REWIND_A, **ANY_VERSION).json()
    assert (done["status"], done["outcome"]) == ("done", "rewind: public.a")
    assert plan.stream and harness.control("public.a").fence > before.fence
    assert harness.control("public.a").window < before.window


def test_a_rewind_names_the_version_that_it_is_about(api: ApiClient) -> None:
    require_problem(api.post(COMMANDS, REWIND_A), 428)
    require_unchanged(api)


def test_a_command_about_a_stale_version_is_refused(api: ApiClient) -> None:
    version = api.get("/replicators/shop").json()["version"]
    current = {"If-Match": f'"{version}"'}
    assert api.get("/replicators/shop").json()["version"] == version
    for _ in range(2):
        assert api.post(COMMANDS, PAUSE_A, key="the-same-key", **current).status_code == 202
    for body in (PAUSE_A, REWIND_A):
        problem = require_problem(api.post(COMMANDS, body, **current), 412)["problems"][0]
        assert version in problem["found"] and problem["do"]
    assert len(api.get(COMMANDS).json()["commands"]) == 1
    version = api.get("/replicators/shop").json()["version"]
    assert api.post(COMMANDS, {"kind": "resume"}, **{"If-Match": f'"{version}"'}).status_code == 202


def test_a_command_without_a_key_is_refused(api: ApiClient) -> None:
    for body in (PAUSE_A, REWIND_A):
        require_problem(api.post(COMMANDS, body, key="", **ANY_VERSION), 428)
    require_unchanged(api)


def test_a_key_of_another_command_is_refused(api: ApiClient) -> None:
    api.post(COMMANDS, PAUSE_A, key="the-same-key")
    other = api.post(COMMANDS, {"kind": "resume"}, key="the-same-key")
    assert require_problem(other, 422)["problems"][0]["code"] == "CMD002"


def test_without_its_state_store_the_api_asks_to_come_again(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = StateStore("postgresql://cdc:geheim@127.0.0.1:1/cdc")
    with pytest.raises(StateUnavailable):
        lost.owner()
    for module in (commands, replicators):
        monkeypatch.setattr(module, "open_state", lambda: lost)
    for answer in (api.get("/replicators"), api.get("/replicators/shop"), api.post(COMMANDS, PAUSE_A)):
        require_problem(answer, 503)
        assert int(answer.headers["Retry-After"]) > 0


def test_another_method_is_refused(api: ApiClient) -> None:
    headers = api.headers("admin") | {"Idempotency-Key": "k" * 8, "Content-Length": "0"}
    for method, path in (
        ("PUT", "/replicators/shop/runs"),
        ("GET", "/replicators/shop/drafts"),
        ("GET", "/replicators/shop/questions/q/answer"),
        ("DELETE", "/replicators/shop"),
        ("PUT", COMMANDS),
        ("POST", "/replicators/shop"),
    ):
        require_problem(api.http.request(method, f"{API}{path}", headers=headers), 405)


def test_a_header_does_not_make_a_read_a_command(api: ApiClient) -> None:
    headers = api.headers("admin") | {"X-HTTP-Method-Override": "POST", "Idempotency-Key": "k" * 8}
    assert api.http.get(f"{API}{COMMANDS}", headers=headers).json()["commands"] == []


def test_the_cookie_of_a_user_does_not_let_another_origin_command(api: ApiClient) -> None:
    api.http.cookies.set("_token", api.tokens["user"])
    headers = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example", "Idempotency-Key": "k" * 8}
    require_problem(api.http.post(f"{API}{COMMANDS}", json=PAUSE_A, headers=headers), 403)
    assert api.http.get(f"{API}{COMMANDS}").json()["commands"] == []


def test_parallel_pauses_have_one_effect(api: ApiClient, harness: RunHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "CHANGES", Rate(100, "changes"))
    fence = harness.control("public.a").fence
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: api.post(COMMANDS, PAUSE_A), range(30)))
    assert {answer.status_code for answer in answers} == {202}
    control = harness.control("public.a")
    assert (control.state.name.value, control.fence) == ("paused", fence + 1)
    fences = [entry for entry in harness.state.audit("shop", 1000) if entry.action == "fence"]
    assert [entry.detail["fence"] for entry in fences if entry.detail["table"] == "public.a"][:1] == [fence + 1]


def test_the_values_of_a_record_need_the_right_to_edit_and_the_list_does_not(api: ApiClient) -> None:
    require_problem(api.get("/replicators/shop/quarantine/one", role="viewer"), 403)
    assert api.get("/replicators/shop/quarantine", role="viewer").status_code == 200


def test_a_reason_is_one_short_line(api: ApiClient) -> None:
    for reason in ("x" * 1001, "a\x00b", "\x1b[2Jgone", "one\nERROR two"):
        require_problem(api.post(COMMANDS, PAUSE_A | {"reason": reason}), 422)
    require_problem(api.post(COMMANDS, PAUSE_A | {"reason": "x" * 1_000_000}), 413)
    require_unchanged(api)


def test_a_reason_is_stored_as_it_is(api: ApiClient) -> None:
    reason = "<script>alert(1)</script> — größer \u2028"
    api.post(COMMANDS, PAUSE_A | {"reason": reason})
    answer = api.get("/replicators/shop/tables/public.a")
    assert answer.json()["reason"] == reason and answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_a_bug_is_a_problem_without_its_text(api: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> StateStore:
        raise ValueError("geheim")

    monkeypatch.setattr(replicators, "open_state", broken)
    assert require_problem(api.get("/replicators"), 500)["problems"][0]["code"] == "API009"
