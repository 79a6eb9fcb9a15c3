from .miner import SyntheticTable as SyntheticTable
from .synthetic_rows import MeasuredMarginal as MeasuredMarginal, SyntheticRows as SyntheticRows
