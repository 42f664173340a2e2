"""Generates the reference from the code.

python -m airflow_cdc_provider.reference --write    updates docs/reference
python -m airflow_cdc_provider.reference --check    exits with 1 if a file is out of date
"""

import sys

from airflow_cdc_provider.reference.files import main

sys.exit(main())
