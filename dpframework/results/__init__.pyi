from .noisy import Noisy as Noisy
from .patterns import Pattern as Pattern
from .redescriptions import (
    Redescription as Redescription,
    Redescriptions as Redescriptions,
    p_values as p_values,
)
