from .adaptive_plan_budget import (
    AdaptiveBudget as AdaptiveBudget,
    PlanCharge as PlanCharge,
)
from .base import Accountant as Accountant
from .built_in import BUILT_IN as BUILT_IN
from .plan_with_loss_totals import AccountedPlan as AccountedPlan, built_in_at as built_in_at
from .pld import PLDAccountant as PLDAccountant
from .pure import (
    AdditiveAccountant as AdditiveAccountant,
    PureAccountant as PureAccountant,
)
from .rdp import RDPAccountant as RDPAccountant
from .zcdp import (
    ZCDPAccountant as ZCDPAccountant,
    zcdp_to_epsilon as zcdp_to_epsilon,
)
