"""MESSIAHS: pool machines across sites without giving up control of any of them."""

__version__ = "0.2.0"
