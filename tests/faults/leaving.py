"""A deletion, a renaming or a move as the command line carries it out, in a process of its own that can be killed.

python -m tests.faults.leaving <file with a TaskCall>
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_cdc_failpoints import ARMED, TOKEN

from airflow_cdc_provider.control.delete_replicator import delete_replicator
from airflow_cdc_provider.control.footprint import own_copies, require_known_tables
from airflow_cdc_provider.control.move_staging import move_staging
from airflow_cdc_provider.control.rename_replicator import rename_replicator
from airflow_cdc_provider.control.replicator import open_replicator
from airflow_cdc_provider.control.replicator_changes import begin, begin_rename, end_runs
from airflow_cdc_provider.core.connections.connection_info import ConnectionInfo
from airflow_cdc_provider.core.decisions.replicator_changes import ChangeKind
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.spec.definition import Staging
from airflow_cdc_provider.staging.open_store import open_log
from airflow_cdc_provider.state.store import StateStore
from tests.faults.worker import Arguments, TaskCall

if TYPE_CHECKING:
    from tests.faults.system import SystemUnderTest

DELETE, RENAME, MOVE = "delete", "rename", "move"
FAILPOINTS = {
    RENAME: (
        "rename.begun",
        "rename.stream",
        "transfer.file",
        "rename.copied",
        "rename.table",
        "rename.rows",
        "rename.removed",
        "rename.audited",
    ),
    MOVE: ("move.begun", "transfer.file", "move.copied", "move.switched", "move.removed"),
    DELETE: (
        "delete.begun",
        "delete.fenced",
        "delete.stream",
        "delete.source",
        "delete.dropped",
        "delete.released",
        "delete.staging",
        "delete.audited",
    ),
}
"""The failpoints of each command, in the order in which it passes them."""

LIMIT_S = 180


def run(system: SystemUnderTest, task: str, arguments: Arguments, failpoint: str = "") -> int:
    """The exit code of the command. It is killed at its first passage of ``failpoint``."""
    call = TaskCall(system.definition, system.secrets, system.state_url, task, "operator", arguments)
    with tempfile.TemporaryDirectory(prefix="cdc-leaving-") as folder:
        path, token = Path(folder, "call"), Path(folder, "token")
        path.touch(mode=0o600)
        path.write_text(json.dumps(to_plain(call)))
        token.touch()
        return subprocess.run(
            [sys.executable, "-m", "tests.faults.leaving", str(path)],
            cwd=Path(__file__).parents[2],
            env=os.environ | ({ARMED: f"{failpoint}=kill9", TOKEN: str(token)} if failpoint else {}),
            timeout=LIMIT_S,
        ).returncode


def carry_out(call: TaskCall) -> None:
    state, definition, arguments = StateStore(call.state_url), call.definition, call.arguments
    replicator, name = open_replicator(definition, call.secrets, state), call.definition.name
    entry = state.replicators.get(name)
    if entry is None or entry.unfinished is None:
        own_copies(replicator)
        if call.task == RENAME:
            require_known_tables(replicator)
    if call.task == RENAME:
        renamed = replace(definition, name=arguments["name"])
        change = begin_rename(state, definition, renamed, "operator")
        end_runs(state, name, change, list)
        rename_replicator(replicator, open_replicator(renamed, call.secrets, state), change, print)
        return
    if call.task == MOVE:
        staging = Staging(arguments["location"], retain=definition.staging.retain)
        change = begin(
            state, definition, ChangeKind.MOVE, "operator", staging=staging, former_staging=definition.staging
        )
        end_runs(state, name, change, list)
        new = open_log(replace(definition, staging=staging), ConnectionInfo()).store
        move_staging(replicator, change, new, print)
        return
    change = begin(state, definition, ChangeKind.DELETE, "operator", drop_copies=True)
    end_runs(state, name, change, list)
    delete_replicator(replicator, change, [], print)


if __name__ == "__main__":
    carry_out(from_plain(TaskCall, json.loads(Path(sys.argv[1]).read_text())))
