"""Bad records in the command line: listed, shown, replayed, discarded; and the runs that carry that out."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.control.quarantine_commands import cases_of, decide_records
from airflow_cdc_provider.control.run_metrics import current_gauges
from airflow_cdc_provider.core.decisions.commands import CommandKind, CommandStatus
from airflow_cdc_provider.core.decisions.operator_decisions import DecisionKind, OperatorDecision, new_decision
from airflow_cdc_provider.core.decisions.steps import Outcome, StepKind, TableResult
from airflow_cdc_provider.core.decisions.summaries import summarize
from airflow_cdc_provider.core.log.change_log import quarantine_path
from airflow_cdc_provider.core.log.quarantine import BadRecordProblems
from airflow_cdc_provider.core.metrics import QUARANTINED
from airflow_cdc_provider.core.table.schema import Origin
from airflow_cdc_provider.core.table.states import TableState
from airflow_cdc_provider.core.times import utc_now
from airflow_cdc_provider.targets.target import TargetState
from tests.provider.bad_records import TABLE, carry, put_aside, staged_and_merged, with_bad_records
from tests.provider.command_line import CommandLine, replicated
from tests.provider.run_harness import RunHarness


@pytest.fixture
def quarantined(harness: RunHarness) -> RunHarness:
    return with_bad_records(harness)


def test_records_are_listed_with_their_age_and_parked_records_but_without_values(
    cdc: CommandLine, quarantined: RunHarness
) -> None:
    body = cdc("quarantine", "list", "shop", "--json").body
    assert [(one["id"], one["parked"], one["blocks_table"], one["decision"]) for one in body["records"]] == [
        ("one", 2, False, None),
        ("two", 2, False, None),
    ]
    assert "raw" not in body["records"][0] and "record" not in body["records"][0]
    result = cdc("quarantine", "list", "shop")
    assert "no date" in result.out and re.search(r"\d+ (days?|weeks?|months?|years?)", result.out)
    assert cdc("quarantine", "list", "shop", "--table", "public.b").out.strip() == "no records in quarantine"


def test_a_list_reads_the_decisions_once_and_no_target_of_a_table_without_bad_records(
    quarantined: RunHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_aside(quarantined, "one", window=2, table="public.b")
    replicator, read = quarantined.replicator, list[str]()
    decisions, state = replicator.log.decisions, replicator.targets.state

    def counted() -> list[OperatorDecision]:
        read.append("decisions")
        return decisions()

    def of_target(table: str, target: str) -> TargetState:
        read.append(table)
        return state(table, target)

    monkeypatch.setattr(replicator.log, "decisions", counted)
    monkeypatch.setattr(replicator.targets, "state", of_target)
    assert [(case.copy, case.record.id) for case in cases_of(replicator, ())] == [
        (TABLE, "one"),
        (TABLE, "two"),
        ("public.b", "one"),
    ]
    assert read == ["decisions", TABLE, "public.b"]
    read.clear()
    assert cases_of(replicator, ["public.c"]) == [] and read == []


def test_a_record_is_shown_with_its_bytes_and_the_audit_records_that(cdc: CommandLine, quarantined: RunHarness) -> None:
    result = cdc("quarantine", "show", "shop", "one")
    assert "b'caf\\xe9'" in result.out and "0/1" in result.out
    assert cdc("quarantine", "show", "shop", "one", "--json").body["codec"] == "pgoutput 1"
    assert [note.action for note in quarantined.state.audit("shop", 2)] == ["quarantine show", "quarantine show"]
    missing = cdc("quarantine", "show", "shop", "three")
    assert missing.code == 66 and "CLI015" in missing.err


def test_a_decision_is_in_staging_before_its_request_and_a_run_carries_it_out(
    cdc: CommandLine, quarantined: RunHarness
) -> None:
    result = cdc("quarantine", "replay", "shop", "one", "--set", "name=2026-01-01", "--set", "id=7", "--json")
    assert (result.code, result.body["status"]) == (0, "pending")
    (decision,) = quarantined.replicator.log.decisions()
    assert (decision.record, decision.kind, decision.values) == ("one", "replay", {"name": "2026-01-01", "id": 7})
    again = cdc("quarantine", "replay", "shop", "one", "--set", "name=2026-01-01", "--set", "id=7", "--json")
    assert again.body["id"] == result.body["id"] and len(quarantined.replicator.log.decisions()) == 1, (
        "again changes nothing"
    )

    opened = quarantined.open("r2")
    assert opened.follow == ("stage", "close_window") and opened.plan.stream == (TABLE, "public.b")
    staged_and_merged(quarantined, "r2", "two")
    assert quarantined.close("r2").problems == ()
    request = quarantined.state.command(result.body["id"])
    assert request is not None and (request.status, request.outcome) == (CommandStatus.DONE, "replay: one")
    assert (
        "public.a: 1 records in quarantine, 2 parked behind them; run `airflow cdc quarantine list shop`"
        in quarantined.log_lines
    )
    done = cdc("quarantine", "replay", "shop", "one")
    assert done.code == 0 and "is no longer in quarantine" in done.out
    assert quarantined.open("r3").follow == ("close_window",)


def test_a_given_value_is_stored_as_its_source_would_write_it(cdc: CommandLine, quarantined: RunHarness) -> None:
    """Also what JSON would take for another value."""
    texts = ("1.10", "1e3", "null", "NaN", "Infinity", '"quoted"', '{"a": 1}', " 7", "")
    for text in texts:
        assert cdc("quarantine", "replay", "shop", "one", "--set", f"name={text}", "--set", "id=007").code == 0
    assert [one.values for one in quarantined.replicator.log.decisions()] == [{"name": one, "id": 7} for one in texts]
    assert cdc("quarantine", "replay", "shop", "one", "--set", "id=7", "--set-null", "name").code == 0
    assert quarantined.replicator.log.decisions()[-1].values == {"id": 7, "name": None}


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (("--set", "id=7.5"), "CLI025"),
        (("--set", "id=null"), "CLI025"),
        (("--set", "id=NaN"), "CLI025"),
        (("--set", "id=9223372036854775808"), "CLI025"),
        (("--set", "name=\ud800"), "CLI025"),
        (("--set-null", "id"), "CLI025"),
        (("--set", "name=a", "--set-null", "name"), "CLI014"),
        (("--set", "name=a", "--set", "name=b"), "CLI014"),
    ],
)
def test_what_is_no_value_of_a_column_is_refused(
    cdc: CommandLine, quarantined: RunHarness, given: tuple[str, ...], code: str
) -> None:
    refused = cdc("quarantine", "replay", "shop", "one", *given, "--json")
    assert (refused.code, [one["code"] for one in refused.body["problems"]]) == (64, [code])
    assert quarantined.replicator.log.decisions() == []


def test_the_key_of_a_record_keeps_its_value(cdc: CommandLine, quarantined: RunHarness) -> None:
    log = quarantined.replicator.log
    bad = log.bad_record(TABLE, "one")
    assert bad is not None
    log.store.write(quarantine_path(TABLE, "one"), replace(bad, record=replace(bad.record, key="[7]")).encode())
    refused = cdc("quarantine", "replay", "shop", "one", "--set", "id=8", "--set", "name=a")
    assert refused.code == 64 and "CLI026" in refused.err and log.decisions() == []
    assert cdc("quarantine", "replay", "shop", "one", "--set", "id=7", "--set", "name=a").code == 0


def test_a_record_that_is_still_bad_fails_the_request_and_is_not_tried_again(
    cdc: CommandLine, quarantined: RunHarness
) -> None:
    request_body = cdc("quarantine", "replay", "shop", "--table", TABLE, "--json").body
    assert request_body["records"] == ["one", "two"]
    quarantined.open("r2")
    quarantined.write_result("r2", "stage", StepKind.STAGE, [TableResult(TABLE, Outcome.UNCHANGED)])
    quarantined.close("r2")
    request = quarantined.state.command(request_body["id"])
    assert (
        request is not None
        and request.status is CommandStatus.FAILED
        and "one is still bad: no date" in request.outcome
    )
    assert quarantined.open("r3").follow == ("close_window",)


def test_no_record_is_discarded_without_a_reason(cdc: CommandLine, quarantined: RunHarness) -> None:
    assert cdc("quarantine", "discard", "shop", "one").code == 64
    assert cdc("quarantine", "discard", "shop", "--reason", "why not").code == 64
    assert cdc("quarantine", "replay", "shop", "one", "two", "--set", "n=1").code == 64
    assert cdc("quarantine", "replay", "shop", "one", "--set", "n").code == 64
    unknown = cdc("quarantine", "replay", "shop", "one", "--set", "n=1")
    assert unknown.code == 64 and "allowed: id, name" in unknown.err
    assert quarantined.replicator.log.decisions() == []
    discard = ("quarantine", "discard", "shop", "one", "--reason", "test data")
    assert "CMD032" in cdc(*discard).err and quarantined.replicator.log.decisions() == []
    result = cdc(*discard, "--yes", "shop", "--json")
    (decision,) = quarantined.replicator.log.decisions()
    assert (result.code, decision.kind, decision.reason) == (0, "discard", "test data")
    (note,) = quarantined.state.audit("shop", 1)
    assert (note.action, note.detail["record"], note.detail["reason"]) == ("quarantine discard", "one", "test data")
    changed = cdc("quarantine", "replay", "shop", "one", "--json")
    assert changed.code == 0 and len(quarantined.replicator.log.decisions()) == 2, "the newest decision counts"


def test_a_record_that_blocks_its_table_can_be_decided_before_the_table_resumes(
    cdc: CommandLine, harness: RunHarness
) -> None:
    replicated(harness)
    put_aside(harness, "one", window=2)
    blocked = replace(harness.control(TABLE).state, name=TableState.BLOCKED, reason="a record", remedy="decide")
    harness.commit("public_a", harness.control(TABLE).fenced(blocked))
    (listed,) = cdc("quarantine", "list", "shop", "--json").body["records"]
    assert (listed["id"], listed["blocks_table"]) == ("one", True)
    result = cdc("quarantine", "discard", "shop", "one", "--reason", "test data", "--yes", "shop")
    assert result.code == 0 and "run `airflow cdc resume shop --table public.a`" in result.out
    assert harness.open("r2").follow == ("close_window",)
    assert len(harness.state.pending("shop")) == 1, "it waits for the table"


def test_the_records_that_stop_a_table_are_counted_while_they_stop_it(cdc: CommandLine, harness: RunHarness) -> None:
    replicated(harness)
    harness.source.change(TABLE)
    harness.extract(harness.open("r2").plan)
    put_aside(harness, "one", "two", window=2)
    stopped = BadRecordProblems("shop", TABLE, 2, "one", "no date", "staging").stop()
    harness.write_result("r2", "stage", StepKind.STAGE, [TableResult(TABLE, Outcome.BLOCKED, problem=stopped)])
    harness.close("r2")
    assert harness.run("r3").problems
    status = cdc("status", "shop", "--json").body["tables"][0]
    assert (status["state"], status["quarantined"]) == ("blocked", 2)
    shown = current_gauges(harness.state, harness.definition, utc_now())
    assert [one.value for one in shown if one.metric is QUARANTINED and one.tags["table"] == TABLE] == [2]
    assert summarize(harness.state.tables("shop").values()).quarantined == 2
    harness.request(CommandKind.RESUME, TABLE)
    harness.open("r4")
    assert harness.state.tables("shop")[TABLE].quarantined == 0


def test_status_shows_the_number_of_quarantined_and_parked_records(cdc: CommandLine, quarantined: RunHarness) -> None:
    cdc("pause", "shop", "--table", TABLE)
    first = cdc("status", "shop", "--json").body["tables"][0]
    assert (first["table"], first["quarantined"], first["parked"]) == (TABLE, 2, 4)
    assert "2 (+4 parked)" in cdc("status", "shop").out
    row = quarantined.state.tables("shop")[TABLE]
    quarantined.state.change_tables("shop", lambda _: [replace(row, changes={"updated": 7, "discarded": 3})])
    status = cdc("status", "shop").out
    assert "2 (+4 parked), 3 discarded" in status and " 7 " in status, "a discarded record is no change"


def test_bad_records_are_kept_while_a_version_names_them_or_their_window_is_not_applied(
    quarantined: RunHarness,
) -> None:
    log = quarantined.replicator.log
    put_aside(quarantined, "later", window=9)
    kept = quarantine_files(quarantined)
    log.remove_old_controls(TABLE, quarantined.control(TABLE).token)
    assert quarantine_files(quarantined) == kept
    quarantined.commit("public_a", quarantined.control(TABLE).fenced(carry=carry(quarantined, "two"), attempt="merge"))
    log.remove_old_controls(TABLE, 0)
    assert quarantine_files(quarantined) == kept, "the version before can still be restored"
    log.remove_old_controls(TABLE, quarantined.control(TABLE).token)
    assert quarantine_files(quarantined) == {"later.json", "two.json"}


def quarantine_files(harness: RunHarness) -> set[str]:
    return set(harness.replicator.log.store.names(f"quarantine/{TABLE}"))


def test_no_clear_value_of_a_hidden_column_is_stored_in_a_decision(cdc: CommandLine, quarantined: RunHarness) -> None:
    control = quarantined.control(TABLE).fenced(attempt="merge")
    assert control.schema is not None
    key, name = control.schema.columns
    hidden = replace(name, origin=Origin("name", name.type, converted=True, hidden=True))
    schema = replace(control.schema, columns=(key, hidden))
    quarantined.commit("public_a", replace(control, schema=schema))
    refused = cdc("quarantine", "replay", "shop", "one", "--set", "name=Ada")
    assert refused.code == 64 and "CLI023" in refused.err and "Ada" not in refused.err
    assert quarantined.replicator.log.decisions() == []
    assert cdc("quarantine", "replay", "shop", "one", "--set", "id=7").code == 0


def test_a_decision_about_records_of_two_copies_is_carried_out_once_for_the_one_that_is_not_paused(
    quarantined: RunHarness,
) -> None:
    """Until the other one is resumed, no run starts for it."""
    harness = quarantined
    replay = harness.request(CommandKind.REPLAY, TABLE, "public.b", records=["one", "two"])
    for record in ("one", "two"):
        decision = new_decision(DecisionKind.REPLAY, "shop", TABLE, "ann", record, record=record)
        harness.replicator.log.write_decision(decision)
    harness.request(CommandKind.PAUSE, "public.b")
    assert harness.open("r2").follow == ("stage", "close_window")
    staged_and_merged(harness, "r2", "two")
    assert harness.close("r2").problems == ()
    assert harness.open("r3").follow == ("close_window",)
    assert not dry_run(harness.replicator).has_work
    again = decide_records(harness.replicator, CommandKind.REPLAY, ["two"], [TABLE], {}, "", "ann", "")
    assert again.command is not None and again.command.id != replay.id
    assert harness.open("r4").plan.commands == (again.command.id,)
    staged_and_merged(harness, "r4")
    harness.close("r4")
    harness.request(CommandKind.RESUME, "public.b")
    assert harness.open("r5").plan.commands == (replay.id,)
    staged_and_merged(harness, "r5")
    assert harness.close("r5").problems == ()
    ended = harness.state.command(replay.id)
    assert ended is not None
    assert (ended.status, ended.outcome) == (CommandStatus.FAILED, "two is still bad: no date; replay: one")
