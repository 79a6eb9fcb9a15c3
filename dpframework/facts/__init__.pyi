from .attributes import (
    Attribute as Attribute,
    Boolean as Boolean,
    Categorical as Categorical,
    Numeric as Numeric,
    View as View,
    as_attributes as as_attributes,
)
from .attributes_by_side import attributes_of_side as attributes_of_side
from .column_read_options import ColumnOptions as ColumnOptions, DateUnit as DateUnit
from .derived_columns import DerivedColumn as DerivedColumn, derive as derive
from .description_overlaps import first_overlap as first_overlap
from .description_simplifier import (
    OTHER_WORD as OTHER_WORD,
    Shortener as Shortener,
    otherwise as otherwise,
    shorten as shorten,
)
from .domain_policies import OutOfDomain as OutOfDomain
from .errors import (
    DoesNotFit as DoesNotFit,
    DPFrameworkError as DPFrameworkError,
    InputError as InputError,
    NotOpened as NotOpened,
    PlanRefused as PlanRefused,
    ReleaseRefused as ReleaseRefused,
    RunStopped as RunStopped,
    nearest as nearest,
    needing_scikit_learn as needing_scikit_learn,
)
from .files import write_whole as write_whole
from .json_reader_and_schema_check import parsed_json as parsed_json
from .logical_descriptions_of_rows import (
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
from .notebook_html import NotebookText as NotebookText
from .open_attribute import OTHER as OTHER, Open as Open
from .output_formats_times_and_csv import csv_text as csv_text
from .output_overwrite_rule import FileKind as FileKind
from .parameter_checks import (
    between_0_and_1 as between_0_and_1,
    from_0_to_1 as from_0_to_1,
    is_whole_number as is_whole_number,
    list_of_names as list_of_names,
    named_once as named_once,
    one_of as one_of,
    share_of_budget as share_of_budget,
    true_or_false as true_or_false,
    whole_number as whole_number,
)
from .privacy_losses import (
    Amount as Amount,
    ByRelation as ByRelation,
    PrivacyLoss as PrivacyLoss,
    Relation as Relation,
    exact as exact,
    float_above as float_above,
    positive as positive,
    positive_rho as positive_rho,
    rational_above as rational_above,
    root_below as root_below,
)
from .privacy_unit import (
    GROUPS as GROUPS,
    PrivacyUnit as PrivacyUnit,
    UnitChange as UnitChange,
    unit_of_groups as unit_of_groups,
)
from .public_lookup_tables import PublicTable as PublicTable
from .read_options import ReadOptions as ReadOptions
from .schema import MOST_ROWS as MOST_ROWS, Schema as Schema
from .schema_text import attribute_from_dict as attribute_from_dict
