"""The boundary of the core: messages, rows, events, actions, timers, and the Protocols of policies and predicates."""
