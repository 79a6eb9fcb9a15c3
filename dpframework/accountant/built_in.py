"""The built-in accountants: pure epsilon, zCDP, RDP and privacy loss distributions."""

from __future__ import annotations

from typing import Any

from dpframework.accountant.base import Accountant
from dpframework.accountant.pld import PLDAccountant
from dpframework.accountant.pure import PureAccountant
from dpframework.accountant.rdp import RDPAccountant
from dpframework.accountant.zcdp import ZCDPAccountant

#: The built-in accountants, in the order in which they are listed. If two totals are equal, the accountant that comes
#: first here is used.
BUILT_IN: tuple[type[Accountant[Any]], ...] = (PureAccountant, ZCDPAccountant, RDPAccountant, PLDAccountant)
