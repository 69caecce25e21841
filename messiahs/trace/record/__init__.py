"""Recording a module while it runs."""
