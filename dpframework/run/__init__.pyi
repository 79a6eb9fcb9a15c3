from .miner_base_and_examples import (
    Example as Example,
    Miner as Miner,
    Witness as Witness,
)
from .noisy_row_count_step import (
    left_by_row_count as left_by_row_count,
    plan_row_count as plan_row_count,
    release_row_count as release_row_count,
)
from .observers import (
    Observer as Observer,
    Release as Release,
)
from .private_table import PrivateTable as PrivateTable
from .run_scopes_and_charges import (
    Charge as Charge,
    Run as Run,
    Scope as Scope,
)
from .spend_block_filter import SpendBlock as SpendBlock
