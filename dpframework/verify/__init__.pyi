from .accountants.accountant_conformance import AccountantConformance as AccountantConformance
from .accountants.accountant_total_check import (
    AccountantReport as AccountantReport,
    check_accountant as check_accountant,
)
from .assertions import (
    assert_bounded as assert_bounded,
    assert_derived_row_by_row as assert_derived_row_by_row,
    assert_loses_as_claimed as assert_loses_as_claimed,
    assert_not_told_apart as assert_not_told_apart,
    assert_private as assert_private,
    assert_read_row_by_row as assert_read_row_by_row,
    assert_samples_as_stated as assert_samples_as_stated,
    assert_sensitivity_holds as assert_sensitivity_holds,
)
from .conformance_suites import (
    MechanismConformance as MechanismConformance,
    MinerConformance as MinerConformance,
    QueryConformance as QueryConformance,
)
from .mechanisms.loss_claim_check import check_losses as check_losses
from .mechanisms.loss_report import LossClaim as LossClaim, LossReport as LossReport
from .mechanisms.neighbour_answers import Answers as Answers
from .mechanisms.probe_query_answers import Probe as Probe
from .mechanisms.sampler_check import SamplerReport as SamplerReport, check_sampler as check_sampler
from .miner_verification import verify_examples as verify_examples
from .miners.audit_report import (
    AuditReport as AuditReport,
    Violation as Violation,
)
from .miners.delta_tail_test import (
    Tail as Tail,
    TailReport as TailReport,
    check_tail as check_tail,
)
from .miners.distinguisher import (
    DistinguishingEvent as DistinguishingEvent,
    distinguish as distinguish,
)
from .miners.replay_audit import audit as audit
from .plan_check_conformance import CheckConformance as CheckConformance
from .queries.sensitivity_report import (
    MeasuredChange as MeasuredChange,
    SensitivityReport as SensitivityReport,
)
from .queries.sensitivity_search import search_sensitivity as search_sensitivity
from .tables.contribution_bounding_checks import (
    BoundingReport as BoundingReport,
    UnitReader as UnitReader,
    check_bounding as check_bounding,
    unit_readers as unit_readers,
)
from .tables.derived_cell_checks import (
    DerivationReport as DerivationReport,
    check_derivation as check_derivation,
)
from .tables.engine_conformance import EngineConformance as EngineConformance
from .tables.row_independence_checks import (
    Reader as Reader,
    ReadingReport as ReadingReport,
    built_in_readers as built_in_readers,
    check_reading as check_reading,
)
from .tables.whole_unit_sample_check import assert_units_sampled as assert_units_sampled
from .verification_report import (
    ExampleAudit as ExampleAudit,
    Verification as Verification,
)
from .verified_component_records import (
    code_records as code_records,
    mechanism_records as mechanism_records,
)
