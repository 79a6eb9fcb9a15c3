"""The only way out: what of a plan may still be released, the gate that releases go through, and who asks for them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
