"""What operators see of the work: figures for Prometheus, spans for OpenTelemetry.

All of it is off until a program asks for it, and needs libraries of extras.
"""
