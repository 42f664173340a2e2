"""An import-linter contract in the form of the table of rooms in the architecture: which direct imports a room may
have.

It lists the allowed imports, so that a new library or a new room needs a decision. The standard library and the room
itself are always allowed; imports for annotations only are not in the graph.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

ROOT = "airflow_cdc_provider"


class RoomContract(Contract):
    """``rooms``: modules, each with its submodules; ``may_import``: names of modules, ``*`` for any text.

    The name of an external library is that of its top module.
    """

    type_name = "rooms"

    rooms: Any = fields.ListField(subfield=fields.StringField())
    may_import: Any = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        inside = [*self.rooms, *(f"{room}.*" for room in self.rooms)]
        allowed = [*inside, *(self.may_import or [])]
        offences = [
            f"{importer} -> {imported} (line {line})"
            for importer in sorted(graph.modules)
            if fits(importer, inside)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not is_free(imported) and not fits(imported, allowed)
            for line in [graph.get_import_details(importer=importer, imported=imported)[0]["line_number"]]
        ]
        return ContractCheck(kept=not offences, metadata={"offences": offences})

    def render_broken_contract(self, check: ContractCheck) -> None:
        output.print_error(f"{', '.join(self.rooms)} may import {', '.join(self.may_import or ['nothing'])}; found:")
        for offence in check.metadata["offences"]:
            output.print_error(f"- {offence}")


def is_free(module: str) -> bool:
    """The top of the package contains only the version."""
    return module == ROOT or module.partition(".")[0] in sys.stdlib_module_names


def fits(module: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(module, pattern) for pattern in patterns)
