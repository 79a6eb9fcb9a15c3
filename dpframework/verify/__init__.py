"""The verification kit: every privacy claim tested by machine, a stranger's as well as our own.

- `audit`: transcripts replayed on neighbouring tables; the realised loss is exact;
- `search_sensitivity`: the largest change of a query's answer beside what it declares;
- `check_sampler`: a mechanism's draws beside the density that it states;
- `check_tail`: for claims with a delta, how much of a run's exact loss lies beyond epsilon;
- `distinguish`: a lower bound on epsilon from many runs, for what has no density;
- `verify_examples`: all of them on a miner's examples, as `dpframework verify` does.

The assertions are for a plugin's own tests; `dpframework.verify.conformance` holds suites to subclass.
"""

from dpframework.verify.assertions import (
    assert_not_told_apart,
    assert_private,
    assert_samples_as_stated,
    assert_sensitivity_holds,
)
from dpframework.verify.auditing import AuditReport, Violation, audit
from dpframework.verify.distinguishing import Distinguished, distinguish
from dpframework.verify.samplers import Probe, SamplerReport, check_sampler
from dpframework.verify.sensitivity import Measured, SensitivityReport, search_sensitivity
from dpframework.verify.tail import Tail, TailReport, check_tail
from dpframework.verify.verification import Audited, Verification, verify_examples

__all__ = [
    "AuditReport",
    "Audited",
    "Distinguished",
    "Measured",
    "Probe",
    "SamplerReport",
    "SensitivityReport",
    "Tail",
    "TailReport",
    "Verification",
    "Violation",
    "assert_not_told_apart",
    "assert_private",
    "assert_samples_as_stated",
    "assert_sensitivity_holds",
    "audit",
    "check_sampler",
    "check_tail",
    "distinguish",
    "search_sensitivity",
    "verify_examples",
]
