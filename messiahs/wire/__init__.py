"""The only place that knows protobuf: bytes to messages and back."""
