"""The boundary of the core: messages, rows, events, actions and timers, and what policies and predicates implement."""
