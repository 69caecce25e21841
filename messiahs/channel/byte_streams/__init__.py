"""Bytes of tasks in gRPC frames or TLS streams of their own: files, outputs, standard input (MESSIAHS 5.3.3)."""
