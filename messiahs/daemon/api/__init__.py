"""The local API: HTTP and JSON on the module's Unix socket."""
