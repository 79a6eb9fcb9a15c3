"""The verification kit: automatic tests that try to break every privacy claim, third-party plugins' claims included.

- `audit` replays the outputs of a miner's runs on neighbouring tables, and computes the exact loss of each output.
- `search_sensitivity` compares the largest change of a query's answer with the sensitivity that the query declares.
- `check_sampler` compares a mechanism's draws with the density that it states.
- `check_losses` computes losses from a mechanism's log-density, and compares them with what the mechanism claims.
- `check_tail` estimates the delta at which a claimed epsilon holds, from the exact losses of many runs.
- `distinguish` finds a lower bound on epsilon from the outputs of many runs. It needs no density of the outputs.
- `check_accountant` compares an accountant's totals with the exact losses of small plans.
- `check_reading` tests that no row changes how another row is read.
- `check_bounding` tests that no unit, such as a person, adds more rows than it may, or changes which rows others keep.
- `check_derivation` tests that each derived cell follows from its own row or unit.
- `verify_examples` runs these checks on a miner's examples, as `dpframework verify` does.

The functions `assert_...` are for a plugin's own tests. The classes `...Conformance` are test suites to subclass.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
