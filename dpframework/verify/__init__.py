"""The verification kit, which tests every privacy claim by machine, third-party plugins' claims included.

- `audit`: transcripts replayed on neighbouring tables; the realised loss is exact;
- `search_sensitivity`: the largest change of a query's answer, compared with what the query declares;
- `check_sampler`: a mechanism's draws, compared with the density that it states;
- `check_tail`: for claims with a delta, how much of a run's exact loss lies beyond epsilon;
- `distinguish`: a lower bound on epsilon from many runs, for outputs without a known density;
- `verify_examples`: all of these on a miner's examples, as `dpframework verify` does.

The assertions are for a plugin's own tests; `dpframework.verify.conformance` holds suites to subclass.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
