"""What operators see: figures for Prometheus, spans for OpenTelemetry, events of OpenLineage.

All of it is off until a program asks for it, and needs libraries of extras. `autoloading/metrics`
says which figures there are.
"""
