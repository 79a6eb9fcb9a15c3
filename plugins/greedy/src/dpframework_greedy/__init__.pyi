from .nonprivate import greedy_without_privacy as greedy_without_privacy
from .serenade import SerenadeCS as SerenadeCS, SerenadeES as SerenadeES
