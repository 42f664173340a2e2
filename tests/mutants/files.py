"""Files of feeds and of staging, as file systems and buckets list them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FEEDS = "airflow_cdc_provider/connectors/transports/files"
STAGING = "airflow_cdc_provider/staging"
NAMES, BUCKETS = "tests/connectors/test_files_names.py", "tests/connectors/test_files_in_buckets.py"
STORES, LOCAL = "tests/connectors/test_stores.py", "tests/connectors/test_local_store.py"

FILES = (
    Mutant(
        "files of a former position are read again",
        f"{FEEDS}/positions.py",
        "file.is_in(self.read)",
        "file.id in self.read",
        ("tests/connectors/test_files_former_positions.py",),
    ),
    Mutant(
        "a marker of a folder is a file of a feed",
        f"{FEEDS}/folder.py",
        "yield from (file for file in found if file.size)",
        "yield from found",
        (f"{BUCKETS}::test_markers_of_folders_are_no_removed_files",),
    ),
    Mutant(
        "a name that cannot be read may be tried again",
        f"{FEEDS}/folder.py",
        "self._unfit_name(found) if UNFIT_NAME in found else self._failed(path, found)",
        "self._failed(path, found)",
        (f"{BUCKETS}::test_a_name_that_cannot_be_read_is_named",),
    ),
    Mutant(
        "a file whose name is no text is left out",
        f"{FEEDS}/local_files.py",
        "if entry.is_symlink() or not _is_text(path):",
        "if not _is_text(path):\n                continue\n            if entry.is_symlink():",
        (f"{NAMES}::test_a_name_that_is_no_text_is_refused",),
    ),
    Mutant(
        "a marker of a folder is a file of staging",
        f"{STAGING}/object_store.py",
        "if file.bytes or not self._is_marker(file.path)",
        "if True",
        (f"{STORES}::test_markers_of_folders_are_no_files_and_end_no_loop",),
    ),
    Mutant(
        "staging may be in the folder of a table",
        "airflow_cdc_provider/loader/nested_folders.py",
        "if one.what == other.what != STAGING or not",
        "if STAGING in (one.what, other.what) or not",
        ("tests/provider/test_loader_nested_folders.py",),
    ),
    Mutant(
        "a pattern has no table with the name of the folder of staging",
        "airflow_cdc_provider/loader/nested_folders.py",
        "if ANY_NAME in name and matches(name, part))",
        "if name == part)",
        ("tests/provider/test_loader_nested_folders.py",),
    ),
    Mutant(
        "a pattern may have tables of any name",
        "airflow_cdc_provider/loader/nested_folders.py",
        ".replace(UNKNOWN, ANY_NAME)",
        " and ANY_NAME",
        ("tests/provider/test_loader_nested_folders.py",),
    ),
    Mutant(
        "a replicator is omitted for a table that a pattern may have",
        "airflow_cdc_provider/loader/files.py",
        " if overlap.certain)",
        ")",
        ("tests/provider/test_loader_nested_folders.py",),
    ),
    Mutant(
        "a text in a draft is plain where the loader reads a number or a date",
        "airflow_cdc_provider/loader/draft.py",
        "return found == plain and not isinstance(found, Unquoted)",
        "return found == plain",
        ("tests/provider/test_draft_values.py",),
    ),
    Mutant(
        "a number of a filter is rounded",
        "airflow_cdc_provider/loader/builder.py",
        "if isinstance(value, float) and Decimal(repr(value)) != Decimal(node.text):",
        "if False:",
        ("tests/provider/test_loader_mistakes.py",),
    ),
    Mutant(
        "a key without effect is accepted",
        "airflow_cdc_provider/loader/builder.py",
        "if needed and needed not in given and value != known[name].default:",
        "if False:",
        ("tests/provider/test_loader_mistakes.py",),
    ),
    Mutant(
        "a table whose name has the word token has no timestamp column of its own",
        "airflow_cdc_provider/loader/builder.py",
        'are_names = form in COLUMN_FORMS or more.get("keys") == NAMES',
        "are_names = form in COLUMN_FORMS",
        ("tests/provider/test_loader.py::test_tables_may_have_the_names_of_secrets",),
    ),
    Mutant(
        "the batches of key audits stay for ever",
        "airflow_cdc_provider/control/retention.py",
        "if batch.startswith(attempts):",
        "if batch in attempts:",
        ("tests/provider/test_window_cleaning.py::test_old_runs_and_their_batches_are_removed",),
    ),
    Mutant(
        "a folder that cannot be listed is empty",
        f"{STAGING}/local_store.py",
        "os.walk(target, onerror=_raise_unless_missing)",
        "os.walk(target)",
        (f"{LOCAL}::test_a_folder_that_cannot_be_listed_is_not_left_out",),
    ),
    Mutant(
        "an error of the file system while it looks for a file is not explained",
        f"{STAGING}/local_store.py",
        'with self._guarded("check for", path) as target:\n            return target.exists()',
        "return self._path(path).exists()",
        (LOCAL,),
    ),
)
