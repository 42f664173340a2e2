"""Random programs: two or three features meet in each, in a few steps that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from tests.programs import program as acts
from tests.programs.program import (
    DEBEZIUM,
    DELTA,
    FEATURES,
    ICEBERG,
    MARIADB,
    POLL,
    POSTGRES,
    TO_MARIADB,
    TO_POSTGRES,
    YDB,
    Act,
    Program,
    Setup,
)

Draw = Callable[[st.SearchStrategy[Any]], Any]
Steps = st.SearchStrategy[tuple[Act, ...]]
FEW, KEYS, VALUES = st.integers(0, 3), st.integers(1, 5), st.integers(0, 9)
SETTLE = st.just(acts.Settle())
TARGETS = (DELTA, DELTA, DELTA, FEATURES, FEATURES, TO_POSTGRES, TO_POSTGRES, TO_MARIADB, ICEBERG)
"""Those that take little time more often."""
SOURCES = (POSTGRES, POSTGRES, POSTGRES, MARIADB, MARIADB, DEBEZIUM, DEBEZIUM, POLL, YDB)
KILLS = (
    "seal.before", "seal.after", "commit.before", "commit.after", "stage.after_batch", "copy.before_commit",
    "copy.after_commit", "alter.before", "alter.after", "carry.after", "quarantine.after_write", "fence.after",
    "result.before", "state.before", "plan.after", "ack.before", "resync.fenced", "control.after",
    "merge.before_commit", "merge.after_commit", "copy.after_swap", "overwrite.after", "schema.after", "holes.after",
    "open.after_lanes", "claim.after", "copy.before_swap", "copy.in_swap", "load.before_commit", "load.after_commit",
    "extract.after_first_file", "request.fenced", "resume.before", "resume.after", "upkeep.before", "decision.after",
)  # fmt: skip
DROP_KILLS = ("drop.decided", "drop.fenced", "drop.dropped", "state.before", "result.before")
REWIND_KILLS = ("rewind.after_fence", "rewind.after_cut", "restore.before", "restore.after", "request.fenced")

PUT = st.builds(acts.Put, KEYS, VALUES, FEW)
DELETE = st.builds(acts.Delete, KEYS, FEW)
MOVE = st.builds(acts.Move, KEYS, KEYS, FEW)
TRUNCATE = st.builds(acts.Truncate, FEW)
BAD = st.builds(acts.PutBad, KEYS, FEW)
ADD = st.builds(acts.AddColumn, FEW, st.sampled_from(("text", "int", "default")), FEW)
DROP = st.builds(acts.DropColumn, FEW, FEW)
RENAME = st.builds(acts.RenameColumn, FEW, FEW, FEW)
RETYPE = st.builds(acts.Retype, st.sampled_from(("widen", "narrow")), FEW)
ANSWER = st.builds(acts.AnswerQuestion, FEW, FEW)
REPLAY = st.builds(acts.Replay, st.sampled_from(("replay", "set", "set", "discard")), FEW)
NEW_TARGET = st.builds(acts.AddTarget, st.sampled_from(TARGETS))
RENAME_TABLE = st.builds(acts.RenameTable, FEW)
CREATE_TABLE = st.just(acts.CreateTable())
DROP_TABLE = st.builds(acts.DropTable, FEW)
TOGETHER = st.builds(
    acts.Transaction,
    st.lists(st.one_of(PUT, PUT, DELETE, MOVE, TRUNCATE, ADD, DROP, RENAME), min_size=2, max_size=4).map(tuple),
)
EDITED: dict[str, tuple[Any, ...]] = {
    "on_delete": ("hard", "soft", "ignore"),
    "ignore": ((), ("truncate",), ("delete",)),
    "quarantine": (False, True),
    "set_null": (False, True),
    "metadata": (False, True),
    "secret": ("plain", "exclude", "hash", "mask", "rename"),
    "sensitive": (False, True),
    "engine": ("auto", "spark"),
    "filtered": (False, True),
    "history": ("none", "scd2", "log"),
    "cast": (False, True),
    "constant": (False, True),
}
EDIT = st.sampled_from([(key, value) for key, values in EDITED.items() for value in values]).map(
    lambda edit: acts.Edit(*edit)
)


def command(*kinds: str) -> st.SearchStrategy[Act]:
    return st.builds(acts.Command, st.sampled_from(kinds), FEW)


def then(*each: st.SearchStrategy[Any]) -> Steps:
    """These acts one after another."""
    return st.tuples(*each)


WRITES = (then(PUT), then(PUT, SETTLE), then(DELETE), then(MOVE), then(SETTLE, st.just(acts.Check())))


@dataclass(frozen=True)
class Feature:
    """``setup``: keys that it needs. ``steps``: what happens to it."""

    steps: tuple[Steps, ...]
    setup: Mapping[str, st.SearchStrategy[Any]] = field(default_factory=dict)


def having(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


FEATURES_OF_PROGRAMS: dict[str, Feature] = {
    "questions": Feature(
        (
            then(ADD, PUT, SETTLE, ANSWER, SETTLE),
            then(st.one_of(ADD, DROP, RENAME), PUT, SETTLE),
            then(st.one_of(DROP, RENAME), PUT, SETTLE, ANSWER, SETTLE),
            then(ANSWER, SETTLE),
        ),
        {"policy": having("ask")},
    ),
    "statements": Feature(
        (then(ADD), then(DROP), then(RENAME), then(RETYPE), then(DROP, ADD), then(RENAME, ADD, PUT), then(PUT, SETTLE)),
        {"policy": having("default", "apply", "ask", "stop", "drop", "null")},
    ),
    "quarantine": Feature(
        (
            then(BAD, SETTLE),
            then(BAD, PUT),
            then(REPLAY, SETTLE),
            then(BAD, SETTLE, st.one_of(TRUNCATE, RENAME, DELETE, PUT), SETTLE, REPLAY, SETTLE),
        ),
        {"quarantine": having(True)},
    ),
    "unrepresentable": Feature((then(BAD, SETTLE), then(BAD)), {"set_null": having(True)}),
    "stopped_records": Feature((then(BAD, SETTLE), then(command("resync", "resume"), SETTLE))),
    "targets": Feature(
        (
            *(then(NEW_TARGET, SETTLE), then(NEW_TARGET), then(st.builds(acts.RemoveTarget)), then(PUT, SETTLE)),
            then(RETYPE, st.builds(acts.AllowFeatures), SETTLE),
        ),
        {"unnamed": having(True, False)},
    ),
    "renamed_targets": Feature(
        (
            then(st.builds(acts.RenameTarget), SETTLE),
            then(st.builds(acts.RenameTarget), PUT, command("resync"), SETTLE),
        ),
        {"unnamed": having(False)},
    ),
    "several": Feature(
        (then(ANSWER, ANSWER, SETTLE, PUT), then(command("pause", "resume", "resync"))),
        {"targets": st.lists(having(*TARGETS), min_size=2, max_size=3).map(tuple), "unnamed": having(True, False)},
    ),
    "history": Feature(
        (then(DELETE, SETTLE), then(TRUNCATE, SETTLE), then(command("resync"), SETTLE), then(PUT, SETTLE)),
        {"history": having("scd2", "scd2", "log"), "beside": having(False, True)},
    ),
    "sensitive": Feature(
        (
            then(ADD, PUT, SETTLE),
            then(st.builds(acts.LoseCopy, FEW), command("resync"), SETTLE),
            then(NEW_TARGET, SETTLE),
        ),
        {"sensitive": having(True)},
    ),
    "publication": Feature(
        (
            then(st.builds(acts.Server, having("deletes", "rows"), having(False)), DELETE, SETTLE),
            then(st.builds(acts.Server, having("deletes", "rows"), having(False, True))),
            then(st.builds(acts.Server, having("deletes", "rows"), having(True)), PUT, SETTLE),
        ),
        {"source": having(POSTGRES)},
    ),
    "binlog": Feature(
        (
            then(st.builds(acts.Server, having("image", "statements", "filter"), having(False)), PUT, SETTLE),
            then(st.builds(acts.Server, having("image", "statements", "filter"), having(True)), PUT, SETTLE),
        ),
        {"source": having(MARIADB)},
    ),
    "settings": Feature(
        (then(st.builds(acts.Inherit, st.integers(0, 30), having(True, True, False))), then(PUT, SETTLE)),
        {"source": having(POSTGRES, MARIADB, POLL)},
    ),
    "renamed_tables": Feature(
        (then(RENAME_TABLE), then(RENAME_TABLE, PUT, SETTLE), then(RENAME_TABLE, RENAME), then(ANSWER, SETTLE)),
        {"source": having(POSTGRES, MARIADB), "policy": having("default", "apply", "ask")},
    ),
    "patterns": Feature(
        (
            then(CREATE_TABLE, SETTLE),
            then(CREATE_TABLE, PUT, SETTLE),
            then(DROP_TABLE, SETTLE),
            then(PUT, DROP_TABLE, CREATE_TABLE, SETTLE),
            then(ANSWER, SETTLE),
        ),
        {
            "source": having(POSTGRES, MARIADB, POLL),
            "new": having("copy", "copy", "ask", "ignore"),
            "dropped": having("", "keep", "drop", "stop"),
        },
    ),
    "partial": Feature(
        (then(PUT, SETTLE), then(DELETE), then(MOVE, SETTLE), then(command("resync", "verify", "repair"), SETTLE)),
        {
            "partial": having(True, True, False),
            "mode": having("initial", "schema_only"),
            "source": having(POSTGRES, MARIADB, POLL),
        },
    ),
    "casts": Feature((then(PUT, SETTLE), then(RETYPE, PUT, SETTLE)), {"cast": having(True)}),
    "constants": Feature((then(PUT, SETTLE), then(command("resync", "verify"), SETTLE)), {"constant": having(True)}),
    "narrow": Feature(
        (then(NEW_TARGET, PUT, SETTLE), then(st.builds(acts.RemoveTarget), SETTLE), then(ANSWER, SETTLE)),
        {
            "narrow": having(True),
            "tables": having(2),
            "targets": st.lists(having(*TARGETS), min_size=2, max_size=3).map(tuple),
            "unnamed": having(True, False),
        },
    ),
    "guard": Feature(
        (
            then(DELETE, DELETE, command("guarded resync"), SETTLE),
            then(TRUNCATE, PUT, command("guarded resync"), SETTLE),
            then(command("guarded resync"), SETTLE),
            then(command("resync", "resume"), SETTLE),
        ),
    ),
    "transactions": Feature((then(TOGETHER), then(TOGETHER, SETTLE))),
    "engine": Feature((then(PUT, SETTLE),), {"engine": having("spark")}),
    "edits": Feature((then(EDIT, SETTLE), then(EDIT, PUT, SETTLE))),
    "listing": Feature(
        (then(st.builds(acts.ListTables, st.integers(1, 2))), then(st.builds(acts.ListTables, FEW), PUT, SETTLE)),
        {"tables": having(2)},
    ),
    "zone": Feature((then(PUT, SETTLE),), {"source": having(POLL), "zone": having("named", "hidden")}),
    "key": Feature((then(PUT, SETTLE),), {"declared_key": having(True), "source": having(POSTGRES, MARIADB)}),
    "clock": Feature(
        (then(st.builds(acts.SetClock, having(False, True))), then(DELETE, SETTLE), then(PUT, SETTLE)),
        {"source": having(DEBEZIUM)},
    ),
    "filter": Feature(
        (
            then(MOVE, SETTLE),
            then(PUT),
            then(st.builds(acts.Server, having("identity"), having(False, True)), PUT, SETTLE),
        ),
        {"filtered": having(True)},
    ),
    "hidden": Feature(
        (then(PUT, SETTLE),), {"secret": having("exclude", "include", "hash", "mask", "truncate", "rename")}
    ),
    "metadata": Feature((then(PUT, SETTLE), then(command("resync"), SETTLE)), {"metadata": having(True)}),
    "shards": Feature((then(MOVE, SETTLE), then(TRUNCATE, SETTLE)), {"shards": having(True)}),
    "texts": Feature((then(PUT, SETTLE),), {"text_keys": having(True)}),
    "deletes": Feature(
        (then(DELETE, SETTLE), then(TRUNCATE), then(PUT, SETTLE)),
        {"on_delete": having("soft", "ignore", "hard"), "ignore": having((), ("truncate",), ("delete",))},
    ),
    "lost": Feature(
        (
            then(st.builds(acts.LoseCopy, FEW), SETTLE),
            then(st.builds(acts.LoseLog), PUT, SETTLE),
            then(command("resync"), SETTLE),
        ),
        {"reconcile": having("manual", "auto"), "mode": having("initial", "when_needed")},
    ),
    "operator": Feature(
        (
            then(command("pause")),
            then(command("resync"), command("pause"), PUT, SETTLE),
            then(command("resume")),
            then(command("rewind"), SETTLE),
            then(command("verify", "repair"), st.just(acts.Run())),
            then(st.builds(acts.ChangePolicy, having("default", "apply", "ask", "stop"))),
        ),
    ),
    "leaving": Feature((then(st.builds(acts.Rename)), then(st.builds(acts.MoveStaging)), then(PUT, SETTLE))),
    "kills": Feature((then(PUT, st.builds(acts.Run, having(*KILLS))), then(st.builds(acts.Run, having(*KILLS))))),
    "unfinished_drops": Feature(
        (
            then(DROP_TABLE, st.builds(acts.Run, having(*DROP_KILLS)), CREATE_TABLE, SETTLE),
            then(DROP_TABLE, st.builds(acts.Run, having(*DROP_KILLS)), SETTLE, CREATE_TABLE, SETTLE),
            then(command("pause", "resume", "resync"), PUT, SETTLE),
        ),
        {"source": having(POSTGRES, MARIADB), "new": having("copy"), "dropped": having("drop"), "tables": having(2, 3)},
    ),
    "unfinished_rewinds": Feature(
        (
            then(PUT, SETTLE, command("rewind"), st.builds(acts.Run, having(*REWIND_KILLS)), SETTLE),
            then(command("rewind"), st.builds(acts.Run, having(*REWIND_KILLS)), command("resync", "resume"), SETTLE),
        ),
    ),
    "outage": Feature(
        (then(st.builds(acts.Outage), PUT, SETTLE), then(st.builds(acts.Outage, having(True)), SETTLE)),
        {"targets": having((DELTA, TO_POSTGRES), (TO_POSTGRES,), (TO_MARIADB, DELTA))},
    ),
    "retention": Feature(
        (
            then(st.builds(acts.LoseLog), PUT, SETTLE),
            then(st.builds(acts.LoseLog), command("resync"), SETTLE),
            then(st.builds(acts.LoseLog), NEW_TARGET, SETTLE),
            then(st.builds(acts.LoseLog), st.builds(acts.LoseCopy, FEW), SETTLE),
        ),
        {"source": having(DEBEZIUM, YDB)},
    ),
    "tables": Feature((then(PUT), then(PUT, SETTLE)), {"tables": having(2)}),
}


@st.composite
def programs(draw: Draw, wanted: tuple[str, ...] = ()) -> Program:
    """``wanted``: features that meet in each program."""
    others = having(*sorted(FEATURES_OF_PROGRAMS.keys() - set(wanted)))
    least = max(0, 2 - len(wanted))
    names = [*wanted, *draw(st.lists(others, min_size=least, max_size=max(1, 3 - len(wanted)), unique=True))]
    features = [FEATURES_OF_PROGRAMS[name] for name in names]
    keys = {
        key: st.one_of(*(feature.setup[key] for feature in features if key in feature.setup))
        for key in sorted({key for feature in features for key in feature.setup})
    }
    setup = {"source": draw(having(*SOURCES)), "targets": (draw(having(*TARGETS)),)}
    setup |= {key: draw(value) for key, value in keys.items()}
    if setup["source"] == DEBEZIUM:
        setup["statements"] = draw(having(False, True))
    steps = st.one_of(*(step for feature in features for step in feature.steps), *WRITES)
    body = [act for step in draw(st.lists(steps, min_size=3, max_size=9)) for act in step]
    return Program(_possible(Setup(**setup)), (acts.Settle(), *body))


def _possible(setup: Setup) -> Setup:
    """Without what no YAML may have together."""
    changes: dict[str, Any] = {}
    if setup.new:
        changes |= {"shards": False, "narrow": False}
    if setup.shards and not setup.new:
        changes |= {"tables": 2, "history": "none", "declared_key": False, "secret": "plain"}
    if setup.on_delete == "soft":
        changes["ignore"] = tuple(what for what in setup.ignore if what != "delete")
    if setup.history != "none" and setup.on_delete == "soft":
        changes["on_delete"] = "hard"
    if (setup.history, setup.source) in (("scd2", YDB), ("log", POLL)):
        changes["history"] = "none"
    if setup.declared_key:
        changes |= {"shards": False, "filtered": False, "text_keys": False, "partial": False, "cast": False}
    if setup.mode == "schema_only":
        changes["partial"] = False
    if setup.partial:
        changes["cast"] = False
    if setup.shards:
        changes["narrow"] = False
    if setup.source != POLL:
        changes["zone"] = ""
    if setup.source in (POLL, YDB, DEBEZIUM):
        changes |= {"filtered": False, "declared_key": False, "shards": False, "mode": "initial"}
    if setup.source in (YDB, DEBEZIUM):
        changes |= {"partial": False, "new": "", "dropped": ""}
    return replace(setup, **changes)
