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
    either as either,
    parallel as parallel,
    post as post,
    repeat as repeat,
    sample as sample,
    scopes as scopes,
    sequential as sequential,
    step as step,
    walk as walk,
    within_scope as within_scope,
)
from .plan import (
    SCHEMA_VERSION as SCHEMA_VERSION,
    Budget as Budget,
    Plan as Plan,
    PublicFacts as PublicFacts,
)
from .reading import plan_from_json as plan_from_json
from .verified import (
    Judged as Judged,
    Verified as Verified,
    VerifiedCode as VerifiedCode,
    judged as judged,
)
