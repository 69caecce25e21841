"""Spans of the attempts of own tasks, sent to a collector with the OpenTelemetry protocol (OTLP over HTTP)."""
