"""The REST API, the summaries it lists, and the confirmation of what loses data."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

API, SUMMARIES, STATE = (
    "tests/provider/test_api.py",
    "tests/core/test_summaries.py",
    "tests/provider/test_state_store.py",
)
REFUSALS = "tests/provider/test_api_refusals.py"
ACCESS = "airflow_cdc_provider/ui/access.py"

API_MUTANTS = (
    Mutant(
        "an answer of the API changes with every second",
        "airflow_cdc_provider/ui/responses.py",
        'AGES = frozenset({"lag_s"})',
        "AGES = frozenset[str]()",
        (API,),
    ),
    Mutant(
        "an answer of the API does not change when a copy becomes late",
        "airflow_cdc_provider/ui/responses.py",
        'AGES = frozenset({"lag_s"})',
        'AGES = frozenset({"lag_s", "late"})',
        (API,),
    ),
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
        "CHANGES.require(user.get_id())\n    return _require_editable(user, replicator)",
        "CHANGES.require(user.get_id())\n    return replicator",
        (API,),
    ),
    Mutant(
        "an API reader sees values of rows",
        ACCESS,
        'they need what a command needs."""\n    return _require_editable(user, replicator)',
        'they need what a command needs."""\n    return replicator',
        ("tests/provider/test_api_quarantine.py",),
    ),
    Mutant(
        "an API request about a DAG that the user may not read is answered",
        ACCESS,
        '    if not _may(user, replicator, "GET"):\n',
        '    if not _may(user, replicator, "GET") and False:\n',
        (REFUSALS,),
    ),
    Mutant(
        "an API command about a stale version is carried out",
        "airflow_cdc_provider/core/decisions/state_versions.py",
        "for row in rows)\n    return",
        "for row in ())\n    return",
        (REFUSALS,),
    ),
    Mutant(
        "an API request repeated with its version is refused",
        "airflow_cdc_provider/ui/routes/commands.py",
        "    if seen and one.state.command_of_key(replicator, key) is None:\n",
        "    if seen:\n",
        (REFUSALS,),
    ),
    Mutant(
        "the id of a record names any file",
        "airflow_cdc_provider/control/quarantine_commands.py",
        " if is_record_id(record_id) else ():",
        ":",
        (REFUSALS,),
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
        "return lagging_since(row) or row.failing_since or row.since",
        "return lagging_since(row) or row.failing_since",
        ("tests/core/test_freshness.py", SUMMARIES),
    ),
    Mutant(
        "a rewind needs no typed name",
        "airflow_cdc_provider/cli/table_commands.py",
        '    confirm_by_name(args, find_definition(args.name).name, "the rewind")\n',
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
