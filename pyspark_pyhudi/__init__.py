"""The hook through which Spark finds ``format("pyhudi")``: it imports every top-level module named ``pyspark_*``."""

from pyhudi.connector.datasource import PyHudiDataSource as DefaultSource

__all__ = ["DefaultSource"]
