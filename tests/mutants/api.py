"""The REST API, the summaries it lists, and the confirmation of what loses data."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

API, SUMMARIES, STATE = (
    "tests/provider/test_api.py",
    "tests/core/test_summaries.py",
    "tests/provider/test_state_store.py",
)
ACCESS = "airflow_cdc_provider/ui/access.py"

API_MUTANTS = (
    Mutant(
        "an API request of another origin changes something",
        ACCESS,
        "    require_same_origin(request)\n",
        "",
        (API,),
    ),
    Mutant(
        "an API reader may command",
        ACCESS,
        'CHANGES.require(user.get_id())\n    return _require(user, replicator, "PUT")',
        'CHANGES.require(user.get_id())\n    return _require(user, replicator, "GET")',
        (API,),
    ),
    Mutant(
        "an API reader sees values of rows",
        ACCESS,
        'they need what a command needs."""\n    return _require(user, replicator, "PUT")',
        'they need what a command needs."""\n    return _require(user, replicator, "GET")',
        ("tests/provider/test_api_quarantine.py",),
    ),
    Mutant(
        "an API draft uses any connection",
        "airflow_cdc_provider/ui/routes/previews.py",
        "        require_connections(user, connection_ids(definition) - used)\n",
        "",
        ("tests/provider/test_api_previews.py",),
    ),
    Mutant(
        "an API list contains what the user may not read",
        "airflow_cdc_provider/ui/registered.py",
        " if one > after and one in allowed and search in one",
        " if one > after and search in one",
        (API,),
    ),
    Mutant(
        "an API summary does not follow its rows",
        "airflow_cdc_provider/state/store.py",
        "            write_summary(connection, replicator, current | {row.table: row for row in rows})\n",
        "            write_summary(connection, replicator, current)\n",
        (STATE,),
    ),
    Mutant(
        "an API summary forgets tables that were never fresh",
        "airflow_cdc_provider/core/decisions/freshness.py",
        "return row.fresh_at or row.failing_since or row.since",
        "return row.fresh_at or row.failing_since",
        ("tests/core/test_freshness.py", SUMMARIES),
    ),
    Mutant(
        "a rewind needs no typed name",
        "airflow_cdc_provider/cli/table_commands.py",
        '    confirm_by_name(args, find_definition(args.name).name, "the rewind", line)\n',
        "",
        ("tests/provider/test_cli.py",),
    ),
    Mutant(
        "an API resync needs no typed name",
        "airflow_cdc_provider/ui/routes/commands.py",
        "LOSES_ROWS = frozenset({CommandKind.REWIND, CommandKind.RESYNC})",
        "LOSES_ROWS = frozenset({CommandKind.REWIND})",
        (API,),
    ),
    Mutant(
        "an API run is started twice by one key",
        "airflow_cdc_provider/hooks/dag_runs.py",
        'run_id = f"manual__{hashlib.sha256(key.encode()).hexdigest()[:32]}"',
        'run_id = f"manual__{uuid.uuid4().hex}"',
        (API,),
    ),
)
