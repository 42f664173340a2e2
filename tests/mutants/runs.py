"""The decisions of a run at its start and its checks at its end; commands; the state store."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "airflow_cdc_provider/core"
CONTROL = "airflow_cdc_provider/control"
STORE = "airflow_cdc_provider/state/store.py"

SETTLED = "tests/provider/test_settled_tables.py"

RUNS = (
    Mutant(
        "an idle run does not ask which tables exist",
        f"{CONTROL}/observe.py",
        "    settled = present_tables(replicator.targets, selections, settled)\n",
        "",
        (SETTLED,),
    ),
    Mutant(
        "the tables of a target that does not answer count as present",
        f"{CONTROL}/settled_tables.py",
        "            return set()\n        return {",
        "            return set(copies)\n        return {",
        (SETTLED,),
    ),
    Mutant(
        "each table of an idle run is asked for by itself",
        f"{CONTROL}/settled_tables.py",
        "            found = targets.named(target).existing([selection.target for selection in own])",
        "            found = {n for s in own for n in targets.named(target).existing([s.target])}",
        (SETTLED,),
    ),
    Mutant(
        "the source is acknowledged before the tables have applied it",
        f"{CORE}/decisions/run_decision.py",
        "    return min([sealed, *(effective_window(sealed, window, pending) for _, window, pending in holding)])",
        "    return sealed or len(list(holding))",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "the acknowledged window is rounded up",
        f"{CORE}/decisions/run_decision.py",
        "sealed if pending is None else pending - 1",
        "sealed if pending is None else pending",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a failing table does not hold the source back",
        f"{CORE}/table/states.py",
        "HOLDS_ACKNOWLEDGEMENT = frozenset({S.REPLICATING, S.FAILING})",
        "HOLDS_ACKNOWLEDGEMENT = frozenset({S.REPLICATING})",
        ("tests/core/test_states.py",),
    ),
    Mutant(
        "windows are removed by age, although a table needs them",
        f"{CONTROL}/retention.py",
        "limit = min([log.sealed() - 1, *copying, *(table.passed for table in progress)])",
        "limit = log.sealed() - 1",
        ("tests/provider/test_window_cleaning.py",),
    ),
    Mutant(
        "the index counts before the target",
        f"{CONTROL}/observe.py",
        "    control = current.control if current else row.control if row else None\n",
        "    control = row.control if row and row.control else current.control if current else None\n",
        ("tests/provider/test_window_errors.py",),
    ),
    Mutant(
        "windows are removed before they are old enough",
        f"{CONTROL}/retention.py",
        "    before = datetime.fromisoformat(now) - replicator.definition.staging.retain\n    expired = []\n",
        "    before = datetime.fromisoformat(now)\n    expired = []\n",
        ("tests/provider/test_window_cleaning.py",),
    ),
    Mutant(
        "a quiet table is not moved over the windows that are removed",
        f"{CONTROL}/retention.py",
        "if table.control is not None and table.control.window < expired[-1]:",
        "if table.control is None:",
        ("tests/provider/test_window_cleaning.py",),
    ),
    Mutant(
        "the source gets an acknowledgement although a table could not be read",
        f"{CONTROL}/close_window.py",
        "if decision.stop is None and log.sealed and _all_cursors_known(decision, rows):",
        "if decision.stop is None and log.sealed:",
        ("tests/provider/test_window_errors.py",),
    ),
    Mutant(
        "a lost position is acknowledged",
        f"{CONTROL}/close_window.py",
        "        if decision.lost is None:",
        "        if decision.plan:",
        ("tests/provider/test_window_errors.py",),
    ),
    Mutant(
        "a commit that a step reports is not checked in the target",
        f"{CONTROL}/closing_rows.py",
        "if missing := self.results.missing_commit(task.table, control):",
        "if (missing := self.results.missing_commit(task.table, control)) and control is None:",
        ("tests/provider/test_window_errors.py",),
    ),
    Mutant(
        "the table of another state store is written to",
        f"{CORE}/decisions/table_checks.py",
        "    if control.owner != facts.owner:",
        "    if not control.owner:",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a table written from another log continues from this one",
        f"{CORE}/decisions/table_checks.py",
        "    if control.log_id != log.log_id:",
        "    if not control.log_id:",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "an attempt that merges is not concurrent",
        f"{CORE}/decisions/attempts.py",
        "WRITES = frozenset({StepKind.SNAPSHOT, StepKind.MERGE,",
        "WRITES = frozenset({StepKind.SNAPSHOT,",
        ("tests/core/test_attempts.py",),
    ),
    Mutant(
        "a result is reused although another attempt has committed since",
        f"{CORE}/decisions/attempts.py",
        "unchanged = now.control.nonce == earlier.control.nonce and now.control.token == earlier.control.token",
        "unchanged = now.control.window >= earlier.control.window",
        ("tests/core/test_attempts.py",),
    ),
    Mutant(
        "another source is read into the copy of the old one",
        f"{CORE}/decisions/table_checks.py",
        "if not control.source_identity or control.source_identity == facts.source_identity:",
        "if not control.source_identity or facts.source_identity:",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a table continues from a window that differs from the one it was written from",
        f"{CORE}/decisions/table_checks.py",
        "if expected and log.sha256.get(control.window) != expected:",
        "if expected and control.window not in log.sha256:",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "the log may end before the cursor of a table",
        f"{CORE}/decisions/table_checks.py",
        "    if control.window > log.sealed:",
        "    if control.window < 0:",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a table skips windows that are removed",
        f"{CORE}/decisions/table_checks.py",
        "if facts.log.oldest <= control.window + 1:",
        "if facts.log.oldest <= facts.log.sealed:",
        ("tests/core/test_decide.py",),
    ),
    # Commands and the state store
    Mutant(
        "a resync that was done is done again",
        f"{CORE}/decisions/table_decisions.py",
        "c.names(name) and c.id != done]",
        "c.names(name) and (c.id != done or done)]",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a table that is being copied again is set replicating by a resume",
        f"{CORE}/decisions/pause_resume.py",
        "    if status.state is TableState.RESYNCING:",
        "    if status.state is TableState.REWINDING:",
        ("tests/core/test_pause_resume.py",),
    ),
    Mutant(
        "a resync request ends before its tables are copied",
        f"{CONTROL}/complete_commands.py",
        "if unfinished and not blocked:",
        "if unfinished and blocked:",
        ("tests/provider/test_window_runs.py",),
    ),
    Mutant(
        "an approval of one mass delete is valid for every later one",
        f"{CORE}/decisions/operator_decisions.py",
        "one for one in approvals if one.command == state.command",
        "one for one in approvals if one.command or state.command",
        ("tests/core/test_decisions.py",),
    ),
    Mutant(
        "a lease is taken from its holder",
        STORE,
        "free = sa.or_(t.leases.c.holder == holder, t.leases.c.expires <= time)",
        "free = sa.or_(t.leases.c.holder == holder, t.leases.c.expires > 0)",
        ("tests/provider/test_state_store.py",),
    ),
    Mutant(
        "a lease is renewed though another run has taken it",
        STORE,
        ".where(t.leases.c.holder == holder, t.leases.c.expires > time)",
        ".where(t.leases.c.expires > time)",
        ("tests/provider/test_state_store.py",),
    ),
    Mutant(
        "a table is claimed by two runs",
        STORE,
        "return bool(connection.execute(query).scalar_one() == run_id)",
        "return bool(connection.execute(query).scalar_one())",
        ("tests/provider/test_state_store.py",),
    ),
    Mutant(
        "the last end of a request counts",
        STORE,
        '.where(t.commands.c.id == command_id, t.commands.c.finished_at == "")',
        ".where(t.commands.c.id == command_id)",
        ("tests/provider/test_state_store.py",),
    ),
    Mutant(
        "one key is used for different requests",
        STORE,
        "if (existing.kind, existing.tables, existing.arguments) != (command.kind, command.tables, command.arguments):",
        "if existing.replicator != command.replicator:",
        ("tests/provider/test_state_store.py",),
    ),
    Mutant(
        "a command is finished before the index shows its tables",
        f"{CONTROL}/immediate_commands.py",
        "    _write_rows(replicator, named)\n",
        "",
        ("tests/provider/test_requests.py",),
    ),
    Mutant(
        "a move is begun while a target does not answer",
        "airflow_cdc_provider/cli/leaving.py",
        "        own_copies(replicator)\n        require_no_runs(state, name,",
        "        require_no_runs(state, name,",
        ("tests/provider/test_rename_and_move.py",),
    ),
)
