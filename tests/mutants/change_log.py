"""Windows: sealed once, complete, without a gap, and never skipped."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "airflow_cdc_provider/core"

CHANGE_LOG = (
    Mutant(
        "a manifest can be written over",
        "airflow_cdc_provider/staging/change_log.py",
        "first = self.store.create(change_log.manifest_path(manifest.window), manifest.encode())",
        "first = not self.store.write(change_log.manifest_path(manifest.window), manifest.encode())",
        ("tests/core/test_staging.py",),
    ),
    Mutant(
        "a corrupt file is read without an error",
        f"{CORE}/log/change_log.py",
        "if tail != expected:",
        "if not tail:",
        ("tests/core/test_changelog.py",),
    ),
    Mutant(
        "a window ends in the middle of a transaction",
        "spark_jobs/windows/window_writer.py",
        "                if self.space.records <= 0 or self.space.bytes <= 0:",
        "                if self.open.records >= self.limits.window_records:\n"
        "                    return WindowEnd.SIZE\n"
        "                if self.space.records <= 0 or self.space.bytes <= 0:",
        ("tests/spark/test_landing.py::test_a_window_is_a_run_of_whole_transactions",),
    ),
    Mutant(
        "a window of changes that are not ours is never full",
        "spark_jobs/windows/window_writer.py",
        " or self.ignored >= limits.window_ignored",
        "",
        ("tests/spark/test_landing.py",),
    ),
    Mutant(
        "a hole is skipped",
        f"{CORE}/decisions/holes.py",
        "        if manifest and (hole := hole_for(manifest, control)):",
        "        if manifest and not (hole := hole_for(manifest, control)):",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a window that did not capture the table is no hole",
        f"{CORE}/decisions/holes.py",
        "    if captured is None:",
        "    if False:",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a window counts as applied one window too early",
        f"{CORE}/decisions/holes.py",
        "    for number in range(control.window + 1, log.sealed + 1):\n"
        "        manifest = log.manifests.get(number)\n"
        "        if manifest and (part",
        "    for number in range(control.window + 2, log.sealed + 1):\n"
        "        manifest = log.manifests.get(number)\n"
        "        if manifest and (part",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a hole before the floor of the copy counts again",
        f"{CORE}/decisions/holes.py",
        'and not "" < hole.order_key <= floor\n',
        "\n",
        ("tests/core/test_decide.py",),
    ),
    Mutant(
        "a batch contains the window with the hole",
        "spark_jobs/batches/batch_plan.py",
        "            return number - 1",
        "            return number",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a batch lacks the window after its cursor",
        "spark_jobs/windows/log_reader.py",
        "for number in range(after + 1, upto + 1))",
        "for number in range(after + 2, upto + 1))",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a batch begins with the window that is applied already",
        "spark_jobs/windows/log_reader.py",
        "for number in range(after + 1, upto + 1))",
        "for number in range(max(after, 1), upto + 1))",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a file that is not the sealed one is read",
        "spark_jobs/windows/log_reader.py",
        "if actual != (file.bytes, file.sha256):",
        "if not actual[0]:",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a repair begins before the log does",
        "spark_jobs/batches/batch_plan.py",
        "if first < log.oldest():",
        "if first < 1:",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a repair stops at the end of its slice",
        "spark_jobs/batches/batch_plan.py",
        "hole or first - 1, control.window)",
        "hole or first - 1, last)",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a repair continues after a hole",
        "spark_jobs/batches/batch_plan.py",
        "hole or first - 1, control.window)",
        "first - 1, control.window)",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a repair is refused since the copy leaves a column out",
        "spark_jobs/batches/batch_plan.py",
        "(without_ignored(schema, control.ignored) for schema in logged)",
        "logged",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a repair is refused since a part of a feed lags",
        "spark_jobs/batches/batch_plan.py",
        "    if late and late.recognises:",
        "    if late and not late.recognises:",
        ("tests/core/test_batch_plan.py",),
    ),
    Mutant(
        "a new stream keeps the epoch of the old one",
        "airflow_cdc_provider/control/open_window.py",
        "epoch = max([facts.log.epoch, *(control.epoch for control in controls)]) + 1",
        "epoch = max([facts.log.epoch, *(control.epoch for control in controls), 1])",
        ("tests/provider/test_window_errors.py",),
    ),
    Mutant(
        "a window may begin after the end of the previous one",
        "spark_jobs/extract.py",
        "if previous.epoch == step.epoch and previous.hi != step.lo:",
        "if previous.epoch != step.epoch and previous.hi != step.lo:",
        ("tests/core/test_batch_plan.py",),
    ),
)
