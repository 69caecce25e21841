"""The paper: values and state machines (MESSIAHS 4 to 7).

No I/O, clock, threads, randomness, logging or protobuf: messages and timeouts in, actions out.
"""
