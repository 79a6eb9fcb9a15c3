from .noisy import Noisy as Noisy
from .patterns import Pattern as Pattern
from .redescription import Redescription as Redescription, p_values as p_values
from .redescriptions import Redescriptions as Redescriptions
