"""Queries for scores of splits, whole trees and pairs of trees, and for class counts by code and by leaf."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
