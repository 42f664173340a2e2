"""Random programs. A program is short and of few kinds of acts: what goes wrong goes wrong where two features meet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
FEW = st.integers(0, 3)
KEYS = st.integers(1, 5)
TARGETS = (DELTA, DELTA, DELTA, FEATURES, FEATURES, TO_POSTGRES, TO_POSTGRES, TO_MARIADB, ICEBERG)
"""Those that take little time more often."""
KILLS = (
    "seal.before", "seal.after", "commit.before", "commit.after", "stage.after_batch", "copy.before_commit",
    "copy.after_commit", "alter.before", "alter.after", "carry.after", "quarantine.after_write", "fence.after",
    "result.before", "state.before", "plan.after", "ack.before", "resync.fenced", "control.after",
    "merge.before_commit", "merge.after_commit", "copy.after_swap", "overwrite.after", "schema.after", "holes.after",
)  # fmt: skip

WRITES: dict[str, st.SearchStrategy[Act]] = {
    "put": st.builds(acts.Put, KEYS, st.integers(0, 9), FEW),
    "delete": st.builds(acts.Delete, KEYS, FEW),
    "move": st.builds(acts.Move, KEYS, KEYS, FEW),
    "truncate": st.builds(acts.Truncate, FEW),
    "bad": st.builds(acts.PutBad, KEYS, FEW),
}
STATEMENTS: dict[str, st.SearchStrategy[Act]] = {
    "add": st.builds(acts.AddColumn, FEW, st.sampled_from(("text", "int", "default")), FEW),
    "drop": st.builds(acts.DropColumn, FEW, FEW),
    "rename": st.builds(acts.RenameColumn, FEW, FEW, FEW),
    "retype": st.builds(acts.Retype, st.sampled_from(("widen", "narrow")), FEW),
}
EVENTS: dict[str, st.SearchStrategy[Act]] = {
    "server": st.builds(acts.Server, st.sampled_from(("deletes", "rows")), st.booleans()),
    "log": st.builds(acts.LoseLog),
    "clock": st.builds(acts.ClockBack),
    "lose": st.builds(acts.LoseCopy, FEW),
    "outage": st.builds(acts.Outage, st.booleans()),
}
OPERATORS: dict[str, st.SearchStrategy[Act]] = {
    "answer": st.builds(acts.AnswerQuestion, FEW, FEW),
    "command": st.builds(
        acts.Command, st.sampled_from(("pause", "resume", "resync", "rewind", "verify", "repair")), FEW
    ),
    "resync": st.builds(acts.Command, st.just("resync"), FEW),
    "replay": st.builds(acts.Replay, st.sampled_from(("replay", "set", "discard")), FEW),
    "target": st.builds(acts.AddTarget, st.sampled_from(TARGETS)),
    "remove": st.builds(acts.RemoveTarget),
    "policy": st.builds(acts.ChangePolicy, st.sampled_from(("default", "apply", "ask", "stop"))),
    "name": st.builds(acts.Rename),
    "move": st.builds(acts.MoveStaging),
    "killed": st.builds(acts.Run, st.sampled_from(KILLS)),
}


def _some(kinds: dict[str, st.SearchStrategy[Act]], least: int, most: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(st.sampled_from(sorted(kinds)), min_size=least, max_size=most, unique=True).map(
        lambda names: [kinds[name] for name in names]
    )


@st.composite
def setups(draw: Draw) -> Setup:
    """Most keys have their defaults: two or three are drawn."""
    source = draw(st.sampled_from((POSTGRES, POSTGRES, POSTGRES, MARIADB, MARIADB, DEBEZIUM, DEBEZIUM, POLL, YDB)))
    targets = draw(st.sampled_from((1, 1, 1, 2, 2, 3)))
    chosen = {
        "source": source,
        "targets": tuple(draw(st.lists(st.sampled_from(TARGETS), min_size=targets, max_size=targets))),
        "unnamed": draw(st.sampled_from((True, True, False))),
        "policy": draw(st.sampled_from(("default", "default", "apply", "ask", "ask", "stop", "drop", "null"))),
        "statements": draw(st.booleans()) if source == DEBEZIUM else False,
    }
    options: dict[str, st.SearchStrategy[Any]] = {
        "tables": st.just(2),
        "text_keys": st.just(True),
        "on_delete": st.sampled_from(("soft", "ignore")),
        "ignore": st.sampled_from((("truncate",), ("delete",))),
        "history": st.sampled_from(("scd2", "scd2", "log")),
        "beside": st.just(True),
        "sensitive": st.just(True),
        "secret": st.sampled_from(("exclude", "hash", "mask", "truncate", "rename")),
        "metadata": st.just(True),
        "filtered": st.just(True),
        "declared_key": st.just(True),
        "shards": st.just(True),
        "quarantine": st.just(True),
        "set_null": st.just(True),
        "reconcile": st.just("auto"),
        "mode": st.just("when_needed"),
    }
    for name in draw(st.lists(st.sampled_from(sorted(options)), max_size=4, unique=True)):
        chosen[name] = draw(options[name])
    return _possible(Setup(**chosen))


def _possible(setup: Setup) -> Setup:
    """Without what no YAML may have together."""
    changes: dict[str, Any] = {}
    if setup.shards:
        changes |= {"tables": 2, "history": "none", "declared_key": False, "secret": "plain"}
    if setup.history != "none" and setup.on_delete == "soft":
        changes["on_delete"] = "hard"
    if setup.history == "scd2" and setup.source == YDB:
        changes["history"] = "none"
    if setup.declared_key:
        changes |= {"shards": False, "filtered": False, "text_keys": False}
    if setup.source in (POLL, YDB, DEBEZIUM):
        changes |= {"filtered": False, "declared_key": False, "shards": False, "mode": "initial"}
    return replace(setup, **changes)


@st.composite
def programs(draw: Draw) -> Program:
    setup = draw(setups())
    writes = draw(_some(WRITES, 1, 4))
    statements = draw(_some(STATEMENTS, 0, 2))
    events = draw(_some(EVENTS, 0, 1))
    operators = draw(_some(OPERATORS, 0, 3))
    if setup.policy == "ask" and statements:
        operators = [*operators, OPERATORS["answer"]]
    if setup.quarantine:
        writes, operators = [*writes, WRITES["bad"]], [*operators, OPERATORS["replay"]]
    any_act = st.one_of(
        st.just(acts.Settle()), st.just(acts.Settle()), WRITES["put"], *writes, *statements, *events, *operators
    )
    body = draw(st.lists(any_act, min_size=3, max_size=16))
    return Program(setup, (acts.Settle(), *body))
