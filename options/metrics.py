"""Options of what a write reports about its commit."""

from __future__ import annotations

from importlib.util import find_spec

from ..errors import InvalidOptionError, UnsupportedOptionError
from ..operations.write_settings import MetricsSettings
from .types import Count, FieldsOf, OptionPart, option

METRICS = FieldsOf(MetricsSettings)
_ON, _TYPE, _CLASS = "hoodie.metrics.on", "hoodie.metrics.reporter.type", "hoodie.metrics.reporter.class"
_LABELS = "hoodie.metrics.pushgateway.report.labels"
_GATEWAY = "PROMETHEUS_PUSHGATEWAY"
# The type of a reporter that Apache Hudi takes if an option names none.
_DEFAULT = "GRAPHITE"


class MetricsOptions(OptionPart):
    """What a write reports about its commit, and where to."""

    metrics_file: str = option(
        METRICS.file,
        "A text file for a collector such as node_exporter's, which gets the figures of each commit. If the path "
        "ends with a slash, it is a folder, in which the file has the table's name.",
        "hoodie.metrics.pyhudi.file",
    )
    metrics_on: bool = option(False, "Push the figures of each commit to a Prometheus gateway.", _ON)
    metrics_reporter: str = option(
        _DEFAULT,
        f"What the figures are pushed to. pyhudi pushes to {_GATEWAY} alone, and refuses any other reporter if "
        "hoodie.metrics.on is true.",
        _TYPE,
    )
    metrics_reporter_class: str = option(
        "", "A Java class that reports. pyhudi refuses it if hoodie.metrics.on is true.", _CLASS
    )
    metrics_host: str = option("localhost", "The gateway's host.", "hoodie.metrics.pushgateway.host")
    metrics_port: Count = option(9091, "The gateway's port.", "hoodie.metrics.pushgateway.port")
    metrics_job: str = option(
        METRICS.job, "The gateway's job; by default the table's name.", "hoodie.metrics.pushgateway.job.name"
    )
    metrics_labels: str = option("", "Labels of the gateway's group, as name:value pairs separated by commas.", _LABELS)
    metrics_prefix: str = option(
        METRICS.prefix,
        "What the names of the figures begin with; by default the table's name.",
        "hoodie.metrics.reporter.metricsname.prefix",
    )

    def metrics_settings(self) -> MetricsSettings:
        """Return where the figures of commits go.

        Raises `UnsupportedOptionError` for another reporter, and `InvalidOptionError` for labels that are no pairs, or
        if the package that pushes is not installed.
        """
        if not self.metrics_on:
            return MetricsSettings(file=self.metrics_file, prefix=self.metrics_prefix)
        for key, reporter in ((_CLASS, self.metrics_reporter_class), (_TYPE, self.metrics_reporter)):
            if reporter and reporter != _GATEWAY:
                raise UnsupportedOptionError(
                    f"With {_ON}=true the option {key}={reporter!r} asks for a reporter that pyhudi does not have.",
                    f"Give {_TYPE}={_GATEWAY}, or {_ON}=false and hoodie.metrics.pyhudi.file for a collector's file.",
                )
        _check_package()
        return MetricsSettings(
            file=self.metrics_file,
            gateway=f"{self.metrics_host}:{self.metrics_port}",
            job=self.metrics_job,
            labels=dict(map(_label, filter(None, map(str.strip, self.metrics_labels.split(","))))),
            prefix=self.metrics_prefix,
        )


def _check_package() -> None:
    """Raise InvalidOptionError if the package that pushes is not installed."""
    if find_spec("prometheus_client") is None:
        raise InvalidOptionError(
            "hoodie.metrics.on=true pushes metrics with the package prometheus-client, which is not installed.",
            "Run pip install 'pyhudi[metrics]', or give hoodie.metrics.pyhudi.file, which needs no package.",
        )


def _label(text: str) -> tuple[str, str]:
    """Return the name and the value of a label; InvalidOptionError for a text that is no pair."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise InvalidOptionError(f"The option {_LABELS} has {text!r}, which is no label.", "Write name:value.")
    return name.strip(), value.strip()
