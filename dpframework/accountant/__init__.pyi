from .base import Accountant as Accountant
from .notions import (
    BUILT_IN as BUILT_IN,
    accountants as accountants,
    totals as totals,
)
from .pld import PLDAccountant as PLDAccountant
from .pure import PureAccountant as PureAccountant
from .zcdp import (
    ZCDPAccountant as ZCDPAccountant,
    zcdp_to_epsilon as zcdp_to_epsilon,
)
