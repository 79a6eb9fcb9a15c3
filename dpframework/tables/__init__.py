"""Tables on their owner's side: sources, encoding, schema inference, blocks of rows and engines."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
