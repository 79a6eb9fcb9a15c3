"""Runs of plans. A miner asks for releases, a scope allows those that the plan holds, and the gate makes them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
