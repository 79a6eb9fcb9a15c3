"""The version of dpframework, in a module without imports, so that every other module can import it."""

__version__ = "0.1.0"
