"""Apache Hudi tables, written and read from Spark 4 through PySpark, with no Hudi jar."""
