"""Decisions about one copy of a table that have an effect on other copies, or at a later time."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "airflow_cdc_provider/core"
READING, VIEW = "airflow_cdc_provider/connectors/copied/reading.py", f"{CORE}/table/copy_view.py"
VIEWS, DISCLOSED = "tests/core/test_views_of_copies.py", "tests/core/test_disclosed_columns.py"
IGNORED, TIMES = "tests/core/test_ignored_columns.py", "tests/core/test_version_times.py"
ANSWERS, IDENTITIES = "tests/core/test_schema_decisions.py", "tests/core/test_identity.py"
TARGETS = "tests/provider/test_loader_targets.py"

SEVERAL_COPIES = (
    Mutant(
        "two databases of a warehouse are one place",
        "airflow_cdc_provider/targets/snowflake/options.py",
        'option_location(target, "database", "schema")',
        'option_location(target, "schema")',
        (TARGETS,),
    ),
    Mutant(
        "a project that one target leaves to the connection differs from each that another one names",
        f"{CORE}/spec/target_locations.py",
        "first == second or None in (first, second)",
        "first == second",
        (TARGETS,),
    ),
    Mutant(
        "a table counts in targets that have no copy of it",
        "airflow_cdc_provider/loader/files.py",
        "(rule for rule in first.tables if rule.has_copy_in(one.name))",
        "first.tables",
        (TARGETS,),
    ),
    Mutant(
        "the change log lacks what one copy leaves out",
        READING,
        "logged = next((one.logged for one in copies if one.logged), None) or first",
        "logged = first",
        (VIEWS,),
    ),
    Mutant(
        "a copy lacks the columns that it leaves out",
        READING,
        "control = _with_ignored(copy.control, logged)\n    schema",
        "control = copy.control\n    schema",
        (VIEWS,),
    ),
    Mutant(
        "a hole of some copies is one of all",
        f"{CORE}/decisions/holes.py",
        "and (not hole.copies or copy in hole.copies)",
        "and bool(hole.copies is not None)",
        (VIEWS,),
    ),
    Mutant(
        "a first copy that may be running has columns",
        VIEW,
        "return self.schema is not None and column not in self.schema.names",
        "return self.schema is None or column not in self.schema.names",
        (VIEWS,),
    ),
    Mutant(
        "a withheld column is known by its name for ever",
        f"{CORE}/spec/selected_columns.py",
        "return name in before and not (column_id and before[name])",
        "return name in before",
        (DISCLOSED,),
    ),
    Mutant(
        "an ignored column is known by its name for ever",
        f"{CORE}/table/ignored_columns.py",
        "return not (known and column.id) or column.id == known",
        "return not (known and column.id) or bool(known)",
        (IGNORED,),
    ),
    Mutant(
        "a dropped column stays ignored",
        "spark_jobs/batches/wanted_columns.py",
        "if name in present or name in self._unseen}",
        "if name in present or name in self._ignored}",
        (IGNORED,),
    ),
    Mutant(
        "an answer `rename` has no end",
        f"{CORE}/decisions/operator_decisions.py",
        "one.columns) for one in answers if one.window is not None and one.window >= since]",
        "one.columns) for one in answers if one.window is not None]",
        (ANSWERS,),
    ),
    Mutant(
        "a clock that was set back is not seen",
        "spark_jobs/histories/version_times.py",
        "return any(time < _time(control.versions_until) for time in _all(times.least, times, now))",
        "return False",
        (TIMES,),
    ),
    Mutant(
        "a publication that was altered and set back is not seen",
        f"{CORE}/table/identity.py",
        "known.sent.altered != now.sent.altered and known.sent.others == now.sent.others:",
        "known.sent.altered != now.sent.altered and known.sent.others != now.sent.others:",
        (IDENTITIES,),
    ),
)
