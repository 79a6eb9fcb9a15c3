from .error_bounds_by_result import PlannedPart as PlannedPart, PlannedStep as PlannedStep
from .nodes import (
    Either as Either,
    FromRelease as FromRelease,
    Node as Node,
    Parallel as Parallel,
    Post as Post,
    Repeat as Repeat,
    Sample as Sample,
    Sequential as Sequential,
    Step as Step,
    beside as beside,
    either as either,
    parallel as parallel,
    post as post,
    repeat as repeat,
    sample as sample,
    sequential as sequential,
    step as step,
    walk as walk,
)
from .plan import (
    SCHEMA_VERSION as SCHEMA_VERSION,
    Budget as Budget,
    Plan as Plan,
    PublicFacts as PublicFacts,
)
from .plan_node_index import (
    PlacedNode as PlacedNode,
    PlanIndex as PlanIndex,
    scopes as scopes,
    within_scope as within_scope,
)
from .plan_reader import plan_from_json as plan_from_json
from .run_costs import RunCost as RunCost
from .spend_block_node import (
    Amounts as Amounts,
    Bounds as Bounds,
    Kind as Kind,
    Spend as Spend,
    kind as kind,
    spend as spend,
)
from .verification_records_file import (
    CodeVerdict as CodeVerdict,
    VerificationRecords as VerificationRecords,
    VerifiedCode as VerifiedCode,
    code_verdicts as code_verdicts,
)
