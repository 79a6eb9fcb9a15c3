"""The accountants that are always there."""

from __future__ import annotations

from typing import Any

from dpframework.accountant.base import Accountant
from dpframework.accountant.pld import PLDAccountant
from dpframework.accountant.pure import PureAccountant
from dpframework.accountant.rdp import RDPAccountant
from dpframework.accountant.zcdp import ZCDPAccountant

#: In the order in which they are listed: the first ones win a tie.
BUILT_IN: tuple[type[Accountant[Any]], ...] = (PureAccountant, ZCDPAccountant, RDPAccountant, PLDAccountant)
