"""Each fact that ``check`` reads of a source or a target is watched by each run, too, or it is listed here with the
reason why not. A fact is a code; where a source or target has several with one code, also the function that makes the
problem, or the setting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from importlib import import_module

import pytest

from airflow_cdc_provider.connectors import SOURCES
from airflow_cdc_provider.targets import TARGETS
from tests.architecture.reached import Fact, methods_of, reached_facts

OF_CHECK = ("check", "warnings", "tls_warnings", "quota_warnings", "renames_hidden", "propose_options")
OF_EACH_RUN = (
    "tables",
    "identities",
    "identity",
    "refused",
    "filtered",
    "status",
    "silent_since",
    "splits",
    "read",
    "existing",
    "state",
)
"""Methods that a run calls, whatever it finds."""

OF_A_COPY = ("open_stream", "copy", "snapshot", "wait_for_capture", "read_split")
"""Methods that are called once in the life of a copy, or for a comparison."""

FAILS = "what a run does then fails, with the error of the server or the store"
FOUND = "the reader finds it in the stream"
SETTLED = "it is decided before the first run, and cannot change without another definition"
HARMLESS = "the copy is correct without it"
IN_TYPE = "the server refuses such a change, or its record is bad"
OLDER = "a server does not become older"
EXPIRES = "changes that are removed unread are missed: the position is lost, or the table has a hole"
LISTED = "a run lists the tables of the source: one that is missing is blocked (TBL004)"
DESCRIBED = "the objects are described in each run: one that is missing or cannot be queried is no table of the source"
POLLED = "an object without events is polled"
IN_RULE = "another rule is another definition of the table: a copy under the former one is blocked (DEF040)"

REASONS = {
    "SRC011": FAILS,
    "SRC012": OLDER,
    "SRC040 DailyApiRequests": FAILS,
    "SRC040 DailyBulkV2QueryJobs": FAILS,
    "SRC041 DailyDeliveredPlatformEvents": FAILS,
    "SRC041": FAILS,
    "SRC053": DESCRIBED,
    "SRC054": "the objects are described in each run: a hidden column is a dropped one",
    "SRC071": FOUND,
    "SRC076 _several_origins": FOUND,
    "SRC077": FOUND,
    "SRC096": EXPIRES,
    "SRC107": FOUND,
    "CPY023": "the first copy asks again before it takes a table over",
    "TGT001": FAILS,
    "TGT002": FAILS,
    "TGT003": FAILS,
    "TGT012": "a run asks for the owner of each table (STA006, STA007)",
    "TGT055": HARMLESS,
    "TGT080": FAILS,
    "CON020": FAILS,
    "ENV004": FAILS,
    "target bigquery TGT073": FAILS,
    "target bigquery TGT103": HARMLESS,
    "target delta TGT011": "files that are in no log are no rows",
    "files SRC132": "a stream that does not run is silent (its state is read in each run)",
    "target iceberg TGT005": SETTLED,
    "target iceberg TGT006": FAILS,
    "target iceberg TGT007": FAILS,
    "jdbc_poll SRC062 _no_table": LISTED,
    "jdbc_poll SRC064": HARMLESS,
    "jdbc_poll SRC065": SETTLED,
    "kafka SRC076": FOUND,
    "kafka SRC083": "the tables of a topic that is missing are missing, or have lost messages (a hole)",
    "mysql SRC009": IN_TYPE,
    "mysql SRC019": LISTED,
    "mysql SRC090": FAILS,
    "mysql SRC091": "a statement in the binlog is a hole of the tables that it may write",
    "mysql SRC092": "each run reads the variable, and an incomplete image is a bad record or a hole",
    "mysql SRC093": "a table without names that was altered is a hole",
    "mysql SRC094 binlog_row_value_options": FOUND,
    "mysql SRC094 binlog_transaction_compression": FOUND,
    "mysql SRC094 mysql56_temporal_format": "the format is that of the table: a former one is refused (SRC152)",
    "mysql SRC097": "the server ends one of the two connections, and the run fails",
    "postgres SRC001": FAILS,
    "postgres SRC002": FAILS,
    "postgres SRC003": FAILS,
    "postgres SRC005 _publication": "the decoder leaves generated columns out",
    "postgres SRC011 server_problems": FAILS,
    "postgres SRC009": IN_TYPE,
    "postgres SRC013 slot_problems": "the status of the stream is that of the slot: the position is lost",
    "postgres SRC014": FAILS,
    "postgres SRC015 slot_problems": FAILS,
    "postgres SRC016": IN_TYPE,
    "postgres SRC024": FAILS,
    "salesforce SRC012 version_problems": FAILS,
    "salesforce SRC048 _require_subscribable": FAILS,
    "salesforce_poll SRC042": DESCRIBED,
    "salesforce_poll SRC050": POLLED,
    "salesforce_poll SRC051": POLLED,
    "salesforce_poll SRC055": "rows that are hidden look deleted: `resync.max_delete` guards them",
    "salesforce_poll SRC062 _polling_problems": "an object without time is copied again in each run",
    "salesforce_poll SRC065": SETTLED,
    "target spanner TGT052": FAILS,
    "target spanner TGT059": FAILS,
    "target spanner TGT088": FAILS,
    "sqlserver SRC010": "the stream reads the change tables alone; a copy that may not read the table fails",
    "sqlserver SRC114": "a capture job that is late is a silent writer",
}
"""By fact, or by type and fact."""

OF_COPIES = {
    "SRC018": IN_RULE,
    "SRC072": IN_RULE,
    "SRC073": "a message without the key of the copy is a bad record",
    "SRC106": IN_RULE,
    "files SRC076 _unordered": FOUND,
    "mysql SRC095 binlog_order_commits": "the stream has the order of the binlog: only a view of rows depends on it",
    "mysql SRC095 gtid_mode": "a reset to the same file and position is not seen without it, however often it is asked",
    "mysql SRC104": "the statement that adds such a key is a hole; a restart that lets the engine act is not seen",
    "postgres SRC019": LISTED,
    "sqlserver SRC012": OLDER,
    "sqlserver SRC019": LISTED,
    "sqlserver SRC116": "a row that changed without these columns is a hole",
    "sqlserver SRC121": "without capture the position is lost",
    "sqlserver SRC122": "the stream needs no snapshot; the query of a copy fails",
}
"""Of facts that a copy asks for, too, and no run."""

ALL = {**SOURCES, **{f"target {name}": path for name, path in TARGETS.items()}}
TYPES = {name: path for name, path in ALL.items() if path.startswith("airflow_cdc_provider.")}


def class_of(path: str) -> tuple[str, str]:
    module, _, name = path.rpartition(":")
    return getattr(import_module(module), name).__module__, name


def facts_of(path: str, methods: Collection[str]) -> set[Fact]:
    """That these methods of a class find, with what they call."""
    module, name = class_of(path)
    entries = [method for own, method in methods_of(module, name).items() if own in methods]
    return reached_facts(module, name, entries, OF_CHECK)


def unwatched(path: str) -> tuple[set[str], set[str]]:
    """The facts that ``check`` asks for and no run: those that nothing else asks for, and those that copies do."""
    checked = facts_of(path, ["check"])
    assert len(checked) > 3, "the facts were not found"
    times = Counter(fact.code for fact in checked)
    names = {fact: fact.code if times[fact.code] == 1 else f"{fact.code} {fact.place}" for fact in checked}
    left, copied = checked - facts_of(path, OF_EACH_RUN), facts_of(path, OF_A_COPY)
    return {names[fact] for fact in left - copied}, {names[fact] for fact in left & copied}


UNWATCHED = {name: unwatched(path) for name, path in TYPES.items()}


def without_reason(name: str, facts: set[str], reasons: Mapping[str, str]) -> list[str]:
    return sorted(fact for fact in facts if f"{name} {fact}" not in reasons and fact not in reasons)


@pytest.mark.parametrize("name", TYPES)
def test_a_fact_that_check_reads_is_watched_by_each_run_or_there_is_a_reason(name: str) -> None:
    never, copied = UNWATCHED[name]
    assert without_reason(name, never, REASONS) == []
    assert without_reason(name, copied, OF_COPIES) == []


@pytest.mark.parametrize("number", [0, 1], ids=["no run", "copies"])
def test_the_list_has_no_fact_that_runs_watch(number: int) -> None:
    reasons = [REASONS, OF_COPIES][number]
    found = {(name, fact) for name, facts in UNWATCHED.items() for fact in facts[number]}
    used = {f"{name} {fact}" if f"{name} {fact}" in reasons else fact for name, fact in found}
    assert reasons.keys() - used == set()


def test_a_helper_of_check_is_no_run() -> None:
    """Neither is a method of another class that has the name of one that a run calls."""
    never, copied = UNWATCHED["kafka"]
    assert "SRC083" in never and "SRC072" in copied
