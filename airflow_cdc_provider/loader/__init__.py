"""Loads definitions from YAML. All problems of a file are reported at once, with line and column.

load_file(path)        one replicator; raises DefinitionInvalid with all problems
load_folder(path)      all replicators of a folder; files with problems are omitted
load_folders(paths)    the same, of several folders
find_clashes(loaded)   names and target tables that several replicators use
"""

from airflow_cdc_provider.loader.files import (
    Loaded,
    ReplicatorFolder,
    find_clashes,
    load_file,
    load_folder,
    load_folders,
    load_text,
)

__all__ = ["Loaded", "ReplicatorFolder", "find_clashes", "load_file", "load_folder", "load_folders", "load_text"]
