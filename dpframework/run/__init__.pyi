from .miner import (
    Example as Example,
    Miner as Miner,
    Witness as Witness,
)
from .observers import (
    Observer as Observer,
    Release as Release,
)
from .private_table import PrivateTable as PrivateTable
from .scope import (
    Charge as Charge,
    Run as Run,
    Scope as Scope,
)
from .spend_block import SpendBlock as SpendBlock
