"""dpframework: composable differential-privacy mechanisms and data miners. Plan, check, run, verify.

import dpframework as dpf

schema = dpf.Schema.load("adult.schema.toml")
study = dpf.Study(schema, epsilon=1.0)
study.add("tree", dpf.miner("dp-id3", target="income", max_depth=5, epsilon=1.0))
results = study.run(dpf.read_table("adult.csv", schema))
"""

import lazy_loader

from dpframework.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
