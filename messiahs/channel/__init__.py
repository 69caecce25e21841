"""The update, control and task channels (MESSIAHS 5.3).

`contract` says what a channel promises; `grpc_channels` and `memory` keep it. `linked_channels` and `link` are what
both share, `task_channel` brings tasks, `byte_streams` their bytes, and `certificates` decides whom to trust.
"""
