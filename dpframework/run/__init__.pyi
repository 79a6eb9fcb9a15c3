from .miner import (
    Example as Example,
    Miner as Miner,
)
from .observers import (
    Observer as Observer,
    Release as Release,
)
from .private_table import PrivateTable as PrivateTable
