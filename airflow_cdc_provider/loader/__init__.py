"""YAML text to definitions. Strict: every mistake of a file is reported at once, with line and column.

load_file(path)      one replicator, or DefinitionInvalid with all problems
load_folder(path)    all replicators of a folder; a broken file costs only itself
find_clashes(loaded)      what replicators share that each must have alone
"""

from airflow_cdc_provider.loader.files import Loaded, ReplicatorFolder, find_clashes, load_file, load_folder, load_text

__all__ = ["Loaded", "ReplicatorFolder", "find_clashes", "load_file", "load_folder", "load_text"]
