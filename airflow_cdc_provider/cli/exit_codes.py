"""Exit codes of ``airflow cdc``, as in ``sysexits.h``. 1: ``verify`` found a difference. 130: Ctrl-C."""

OK, DIFFERENT, USAGE, DATA, NO_INPUT, BUG, TEMPORARY, PERMISSION, CONFIGURATION = 0, 1, 64, 65, 66, 70, 75, 77, 78
INTERRUPTED = 130
