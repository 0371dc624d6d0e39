"""The script that spark-submit needs to run a pyhudi job.

spark-submit examples/submit_job.py upsert --path /data/trips --source parquet:/landing/trips
"""

import sys

from pyhudi.connector.jobs import main

sys.exit(main())
