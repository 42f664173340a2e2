"""Commands as they are given: the line that confirms one, and the state store that it is given to."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONTROL = "airflow_cdc_provider/control"
SENSOR = "tests/provider/test_changes_sensor.py"
OTHER_STORES = "tests/provider/test_other_state_stores.py"
CONFIRMED = "tests/provider/test_confirmed_lines.py"

GIVEN_COMMANDS = (
    Mutant(
        "the remedy of a command that was not confirmed is about all tables",
        "airflow_cdc_provider/cli/typed_lines.py",
        "    values = map(str, value if isinstance(value, list) else [value])\n",
        "    values = map(str, [] if isinstance(value, list) else [value])\n",
        (CONFIRMED,),
    ),
    Mutant(
        "no run starts for an answer",
        f"{CONTROL}/dry_run.py",
        "answered_questions(replicator, states) or paused",
        "paused",
        (SENSOR,),
    ),
    Mutant(
        "no run starts to finish a rewind",
        f"{CONTROL}/dry_run.py",
        "bool(rewinding or drops",
        "bool(drops",
        (SENSOR,),
    ),
    Mutant(
        "a fence takes a copy from another state store",
        f"{CONTROL}/fences.py",
        "        raise ForeignTarget(problem)\n",
        "        pass\n",
        (OTHER_STORES,),
    ),
    Mutant(
        "a command pauses a copy of another state store",
        "airflow_cdc_provider/core/decisions/pause_resume.py",
        "    if status.foreign:\n        return StateChange(status.table, refusal=status.foreign)\n",
        "",
        (OTHER_STORES,),
    ),
    Mutant(
        "a command shows a copy of another state store as its own",
        f"{CONTROL}/immediate_commands.py",
        "    _write_rows(replicator, own, changed)\n",
        "    _write_rows(replicator, named or own, changed)\n",
        (OTHER_STORES,),
    ),
    Mutant(
        "a table that is listed again is said to continue in any case",
        f"{CONTROL}/table_rows.py",
        "if access was revoked, {GRANTED_AGAIN}. If",
        "if access was revoked, {GRANTED_AGAIN[:35]}. If",
        ("tests/provider/test_dropped_tables.py",),
    ),
    Mutant(
        "a command is stored that no run would see",
        f"{CONTROL}/submit_commands.py",
        "        require_own_tables(replicator)\n",
        "        pass\n",
        (OTHER_STORES,),
    ),
    Mutant(
        "a decision is written about a record of a copy of another state store",
        f"{CONTROL}/quarantine_commands.py",
        "    require_own_copies(replicator, {case.copy for case in chosen})\n",
        "",
        (OTHER_STORES,),
    ),
    Mutant(
        "a question about a copy of another state store is answered",
        f"{CONTROL}/answers.py",
        "    require_own_copies(replicator, [question.table])\n",
        "",
        (OTHER_STORES,),
    ),
    Mutant(
        "one copy of another state store stops the resume of all",
        f"{CONTROL}/reconcile.py",
        "            replicator.state.release_claim(replicator.name, task.table, run_id)\n"
        '            log_info(f"{task.table} is skipped: {error}")\n'
        "            continue\n"
        '        failpoint("resume.after")\n',
        '            raise error\n        failpoint("resume.after")\n',
        (OTHER_STORES,),
    ),
    Mutant(
        "one copy of another state store stops the fences of a step",
        "airflow_cdc_provider/operators/stale_attempts.py",
        "    except ForeignTarget as error:\n",
        "    except FileExistsError as error:\n",
        ("tests/provider/test_spark_operator_retries.py",),
    ),
    Mutant(
        "a sensor with another state store waits for ever",
        "airflow_cdc_provider/triggers/changes.py",
        "        raise ForeignTarget(stop)\n",
        "        return False\n",
        (SENSOR,),
    ),
)
