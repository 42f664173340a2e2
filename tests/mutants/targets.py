"""Several targets of one replicator. ``ONLY="one target"`` runs these."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COMMANDS = "tests/provider/test_target_commands.py"
TARGETS = "tests/core/test_targets.py"

TARGET_MUTANTS = (
    Mutant(
        "a missing connection of one target stops the run of all",
        "airflow_cdc_provider/hooks/connections.py",
        "if all(target.problems for target in targets.values()):",
        "if any(target.problems for target in targets.values()):",
        ("tests/provider/test_connections.py",),
    ),
    Mutant(
        "one target without a connection is used without it",
        "airflow_cdc_provider/targets/registry.py",
        "        raise_problems(own.problems)\n",
        "",
        (COMMANDS,),
    ),
    Mutant(
        "names of tables need the connection of one target",
        "airflow_cdc_provider/targets/registry.py",
        "return self._naming(self._targets[target_of_copy(copy)].type)(source_table(copy))",
        "return self.of(copy) and self._naming(self._targets[target_of_copy(copy)].type)(source_table(copy))",
        (COMMANDS, "tests/provider/test_step_targets.py"),
    ),
    Mutant(
        "a rejected login of one target delays the drop of copies in the others",
        "airflow_cdc_provider/control/drop_gone_copies.py",
        "except (Blocked, Fenced, *UNREADABLE) as error:",
        "except (Blocked, Fenced, *UNREADABLE[:1]) as error:",
        (f"{COMMANDS}::test_the_copies_of_a_dropped_table_are_dropped_where_they_can",),
    ),
    Mutant(
        "an assessment ends at the first copy whose one target cannot be used",
        "airflow_cdc_provider/control/assessments.py",
        "        except UNREADABLE:\n            continue\n",
        "        except UNREADABLE:\n            break\n",
        (f"{COMMANDS}::test_check_and_assess_report_the_unusable_target_beside_the_others",),
    ),
    Mutant(
        "a table without a copy is assessed only if one target has no name",
        "airflow_cdc_provider/control/assessments.py",
        "copy = name if targets.has(name) else copy_name(name, next(iter(targets)))",
        "copy = name",
        (COMMANDS,),
    ),
    Mutant(
        "the settings of a store end at one target whose connection cannot be used",
        "spark_jobs/runtime/object_stores.py",
        "        with contextlib.suppress(CheckFailed):\n",
        "        with contextlib.nullcontext():\n",
        ("tests/core/test_object_store_access.py",),
    ),
    Mutant(
        "what was acknowledged does not wait for one target that cannot be read",
        "airflow_cdc_provider/control/close_window.py",
        "return all(table in rows and rows[table].control is not None for table in unread)",
        "return True",
        (f"{COMMANDS}::test_first_copies_are_made_where_they_can",),
    ),
    Mutant(
        "the job of a copy has the first target instead of its one target",
        "airflow_cdc_provider/core/spec/definition.py",
        "return replace(self, target=self.target_named(name), targets=())",
        "return replace(self, target=self.all_targets[0], targets=())",
        (TARGETS,),
    ),
    Mutant(
        "the cut of one target contains the copies of all",
        "airflow_cdc_provider/control/publish_cut.py",
        "(row for row in rows if target_of_copy(row.table) == target)",
        "rows",
        (f"{COMMANDS}::test_a_connection_that_does_not_exist_stops_the_copies_of_its_target_alone",),
    ),
)
