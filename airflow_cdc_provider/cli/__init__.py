"""``airflow cdc …``: what an operator asks and orders. Each command is a module; it is imported when it is called."""
