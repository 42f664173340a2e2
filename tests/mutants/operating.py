"""Tests of connections, Dag bundles, and the id that a task, its Spark application and its commits have in common."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONNECTIONS, BUNDLES = "tests/provider/test_connection_types.py", "tests/provider/test_dag_bundles.py"
APPLICATION = "airflow_cdc_provider/core/decisions/spark_application.py"

OPERATING_MUTANTS = (
    Mutant(
        "a connection test shows the text of an unexpected error",
        "airflow_cdc_provider/hooks/connection_types.py",
        '            return False, f"the test failed with {type(error).__name__}; the log has the details"\n',
        "            return False, str(error)\n",
        (CONNECTIONS,),
    ),
    Mutant(
        "a source reads the settings of a connection test",
        "airflow_cdc_provider/hooks/connections.py",
        " for name, value in extra.items() if name != TEST_WITH}",
        " for name, value in extra.items()}",
        (CONNECTIONS,),
    ),
    Mutant(
        "a replicator is called deleted although a Dag bundle is missing",
        "airflow_cdc_provider/cli/status.py",
        "complete=not unsearched)",
        "complete=True)",
        (BUNDLES,),
    ),
    Mutant(
        "a Spark application is named without its attempt",
        APPLICATION,
        '    return f"cdc-{replicator}-{kind}-{attempt}"\n',
        '    return f"cdc-{replicator}-{kind}"\n',
        ("tests/provider/test_spark_operator.py",),
    ),
    Mutant(
        "a link leads to a file",
        APPLICATION,
        "    if not ADDRESS.fullmatch(address) or str(",
        "    if not address or str(",
        ("tests/core/test_spark_application.py",),
    ),
)
