from .count_formula import (
    Formula as Formula,
    absolute as absolute,
    as_formula as as_formula,
    at_least as at_least,
    cells as cells,
    largest_over_classes as largest_over_classes,
    least as least,
    legend as legend,
    most as most,
    n as n,
    public as public,
    root as root,
    rows as rows,
    rows_of_part as rows_of_part,
    sum_over_classes as sum_over_classes,
    x_log2_x as x_log2_x,
)
from .evaluation import (
    is_rational as is_rational,
    value_of as value_of,
)
from .formula_compiler import (
    compiled_for as compiled_for,
    kernel_of as kernel_of,
    kernel_source as kernel_source,
    plain_score as plain_score,
    score_kernel as score_kernel,
    scores_of as scores_of,
)
from .largest_change_search import (
    describe_search as describe_search,
    find_refutation as find_refutation,
    nearest_neighbours as nearest_neighbours,
)
from .mathml_writer import (
    mathml as mathml,
    shape_mathml as shape_mathml,
)
from .proof_argument_audit import audit as audit
from .proof_arguments import (
    Argument as Argument,
    Fact as Fact,
    Rule as Rule,
)
from .proof_certificates_and_audit import (
    AuditedClaim as AuditedClaim,
    Certificate as Certificate,
    audit_certificate as audit_certificate,
)
from .proofs import (
    Proof as Proof,
    ProofSummary as ProofSummary,
    Verdict as Verdict,
    prove as prove,
    vacuous as vacuous,
)
from .rounding_error_bound import rounding_of as rounding_of
from .score_structures import (
    Adds as Adds,
    Cells as Cells,
    Outer as Outer,
    Parts as Parts,
    Shape as Shape,
    Total as Total,
    table_rows as table_rows,
)
from .sensitivity_claims_and_neighbours import (
    LAST_INCREMENT as LAST_INCREMENT,
    Change as Change,
    Claim as Claim,
    Neighbours as Neighbours,
    ScoreClaims as ScoreClaims,
    bound_at as bound_at,
    norm_claims as norm_claims,
    score_claims as score_claims,
)
from .sensitivity_from_small_tables import (
    DerivedClaim as DerivedClaim,
    derive as derive,
)
from .smt_goal_ground_test import (
    ground_problem as ground_problem,
    query_problem as query_problem,
)
from .smt_goal_writer import without_claim as without_claim
from .solvers import (
    has_solvers as has_solvers,
    require_solvers as require_solvers,
)
from .stored_verdicts import proved_claims as proved_claims
