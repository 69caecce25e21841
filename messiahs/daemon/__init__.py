"""The live host of a scheduling module."""
