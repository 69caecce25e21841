"""`messiahs module …`: run one module, list modules, preview vectors, revoke tasks."""
