"""``airflow cdc …``, the command line for operators. Each command is a module that is imported on its first use."""
