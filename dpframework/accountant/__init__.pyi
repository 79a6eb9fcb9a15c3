from .base import Accountant as Accountant
from .concentrated import (
    ConcentratedAccountant as ConcentratedAccountant,
    concentrated_to_epsilon as concentrated_to_epsilon,
)
from .notions import (
    BUILT_IN as BUILT_IN,
    accountants as accountants,
    totals as totals,
)
from .pld import PLDAccountant as PLDAccountant
from .pure import PureAccountant as PureAccountant
