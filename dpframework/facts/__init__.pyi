from .descriptions import (
    And as And,
    Below as Below,
    Cases as Cases,
    Description as Description,
    Equals as Equals,
    Literal as Literal,
    Not as Not,
    Or as Or,
    description_from_dict as description_from_dict,
)
from .errors import (
    DPFrameworkError as DPFrameworkError,
    InputError as InputError,
    PlanRefused as PlanRefused,
    ReleaseRefused as ReleaseRefused,
    RunStopped as RunStopped,
    nearest as nearest,
)
from .privacy import (
    Amount as Amount,
    ByRelation as ByRelation,
    PrivacyLoss as PrivacyLoss,
    Relation as Relation,
    exact as exact,
    float_above as float_above,
    positive as positive,
    rational_above as rational_above,
)
from .schema import (
    Attribute as Attribute,
    Boolean as Boolean,
    Categorical as Categorical,
    Numeric as Numeric,
    Schema as Schema,
    View as View,
    attribute_from_dict as attribute_from_dict,
)
from .shortening import Shortener as Shortener
