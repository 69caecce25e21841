"""Notifying users of the ends of their tasks: by commands of their own, and by webhooks."""
