"""Telemetry for operators: metrics for Prometheus, spans of OpenTelemetry, events of OpenLineage.

All of it is off by default and needs extra libraries. `autoloading/metrics` defines the metrics.
"""
