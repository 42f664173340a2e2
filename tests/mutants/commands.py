"""Commands of operators: which copies they are about, when they wait, and how they end."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DECISIONS, CONTROL = "airflow_cdc_provider/core/decisions", "airflow_cdc_provider/control"
PAUSED, RESYNCS = "tests/provider/test_paused_copies.py", "tests/core/test_pending_resyncs.py"
LEFT, QUARANTINE = "tests/provider/test_left_tables.py", "tests/provider/test_quarantine.py"
IGNORED = "tests/provider/test_ignored_until_copied.py"

COMMANDS = (
    Mutant(
        "a resync undoes a pause",
        f"{DECISIONS}/pending_resyncs.py",
        "if control and control.state.name is TableState.PAUSED:",
        "if False:",
        (PAUSED, RESYNCS),
    ),
    Mutant(
        "a run copies a table that was paused since its decision",
        f"{CONTROL}/reconcile.py",
        "if current.control.state.name is TableState.PAUSED:",
        "if False:",
        (PAUSED,),
    ),
    Mutant(
        "a command that waits for an operator is work for a run",
        f"{CONTROL}/dry_run.py",
        "commands = decision.plan.commands or",
        "commands = self.facts.commands or",
        (PAUSED,),
    ),
    Mutant(
        "status does not say what a command waits for",
        f"{DECISIONS}/waiting_commands.py",
        "if row.state is TableState.PAUSED and command.names(row.table)]",
        "if row.state is TableState.NEW and command.names(row.table)]",
        (PAUSED,),
    ),
    Mutant(
        "a resync is repeated for a copy that was paused after it",
        f"{DECISIONS}/pending_resyncs.py",
        "return command in control.resyncs or (",
        "return (",
        (PAUSED, RESYNCS),
    ),
    Mutant(
        "a copy does not record the commands that it carries out",
        "spark_jobs/copies/copying.py",
        "        resyncs=task.resyncs,\n",
        "",
        ("tests/core/test_copying.py",),
    ),
    Mutant(
        "a rewound copy has not carried out the resync before it",
        f"{CONTROL}/rewind.py",
        ", resyncs=rewinding.resyncs)",
        ")",
        ("tests/provider/test_requests.py",),
    ),
    Mutant(
        "a resync ends while one of its copies is being made",
        f"{CONTROL}/complete_commands.py",
        "ended = row.state in (TableState.REPLICATING, TableState.PAUSED, TableState.BLOCKED)\n    return ended and",
        "return row.state is TableState.REPLICATING or",
        (PAUSED,),
    ),
    Mutant(
        "a resync whose run has died never ends",
        f"{CONTROL}/complete_commands.py",
        "command.kind is CommandKind.RESYNC and (named or ended):",
        "command.kind is CommandKind.RESYNC and started:",
        (PAUSED,),
    ),
    Mutant(
        "a command about a table that left the YAML is carried out when that returns",
        f"{CONTROL}/close_window.py",
        "    end_left_commands(replicator, decision, _known_to(decision, before))\n",
        "",
        (LEFT,),
    ),
    Mutant(
        "a run ends a command that came after its decision",
        f"{DECISIONS}/left_tables.py",
        "if decision.stop or command.id not in decision.pending:",
        "if decision.stop:",
        (LEFT,),
    ),
    Mutant(
        "a command ends for a table that the source does not list now",
        f"{DECISIONS}/left_tables.py",
        "waited_for.isdisjoint((table, source_table(table)))",
        "waited_for is not None",
        (LEFT,),
    ),
    Mutant(
        "a command about all tables is carried out for one that left the YAML and returns",
        f"{DECISIONS}/left_tables.py",
        "for table in command.tables or known",
        "for table in command.tables",
        (LEFT,),
    ),
    Mutant(
        "a resync that a copy carried out before its table left is called not carried out",
        f"{CONTROL}/end_left_commands.py",
        "if control and has_carried_out(control, command.id)}",
        "if control and not control}",
        (LEFT,),
    ),
    Mutant(
        "records of a table that left are called replayed",
        f"{CONTROL}/complete_commands.py",
        "*decided} and one not in bad]",
        "*decided, one} and one not in bad]",
        (LEFT,),
    ),
    Mutant(
        "no run starts to end a command about a table that left the YAML",
        f"{CONTROL}/dry_run.py",
        "one.kind in IMMEDIATE or left_tables(one, decision)",
        "one.kind in IMMEDIATE",
        (LEFT,),
    ),
    Mutant(
        "a decision about records is carried out again in each run while one copy is paused",
        f"{CONTROL}/complete_commands.py",
        "dict.fromkeys((row.table for row in ready), CARRIED_OUT)",
        "dict.fromkeys((row.table for row in ()), CARRIED_OUT)",
        (QUARANTINE,),
    ),
    Mutant(
        "a decision about records forgets what was bad in a copy before",
        f"{CONTROL}/complete_commands.py",
        '**command.result.get("still_bad", {}), ',
        "",
        (QUARANTINE,),
    ),
    Mutant(
        "a second decision about records is that which has ended for a copy",
        f"{CONTROL}/quarantine_commands.py",
        " and not other.ended:",
        ":",
        (QUARANTINE,),
    ),
    Mutant(
        "a comparison of paused copies starts a step",
        f"{DECISIONS}/comparisons.py",
        "if any(command.names(one.table) for one in stream)]",
        "if command.names]",
        (PAUSED,),
    ),
    Mutant(
        "a comparison does not wait for the copy of its table",
        f"{DECISIONS}/comparisons.py",
        "frozenset({TableAction.STREAM, TableAction.COPY, TableAction.RECONCILE, TableAction.COPYING})",
        "frozenset({TableAction.STREAM})",
        (PAUSED,),
    ),
    Mutant(
        "a copy that was not compared differs",
        f"{CONTROL}/complete_commands.py",
        '"not identical": [table for table in compared if table not in identical],',
        '"not identical": [one["table"] for one in tables if not one["identical"]],',
        (PAUSED,),
    ),
    Mutant(
        "a comparison of nothing is no failure",
        f"{CONTROL}/complete_commands.py",
        "failed=not compared)",
        "failed=False)",
        (PAUSED,),
    ),
    Mutant(
        "the answer resync forgets ignored columns before the copy",
        f"{CONTROL}/answers.py",
        "run_id, state, ignored=ignored)",
        "run_id, state, ignored={} if state.name is TableState.RESYNCING else ignored)",
        (IGNORED,),
    ),
    Mutant(
        "a resync that another copy waits for forgets ignored columns",
        f"{CONTROL}/observe.py",
        "or pending_resyncs(commands, selection.table, control):",
        'or any(one.kind == "resync" and one.names(selection.table) for one in commands):',
        (IGNORED,),
    ),
    Mutant(
        "records in quarantine are reported of a table that left the YAML",
        "airflow_cdc_provider/core/table/state_rows.py",
        "if self.control and self.state not in WITHOUT_COPY else",
        "if self.control else",
        (LEFT,),
    ),
    Mutant(
        "an operator is asked about a table that left the YAML",
        "airflow_cdc_provider/core/table/state_rows.py",
        "            case TableState.DROPPED:\n                return None\n",
        "",
        (LEFT,),
    ),
    Mutant(
        "a copied table keeps the question that a new table waits for",
        f"{CONTROL}/table_rows.py",
        "_without_question(row) if table in tasks else row",
        "row",
        (LEFT,),
    ),
)
