"""The types of the arrays that kernels read and fill in."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
#: Sets of rows, in words of 64 rows.
Bits: TypeAlias = "NDArray[np.uint64]"
#: Small numbers: the kinds of splits (EQUALS, BELOW or MULTIWAY), or whether a walk accepts each of its steps.
Kinds: TypeAlias = "NDArray[np.int8]"
