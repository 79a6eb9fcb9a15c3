from .above_threshold import AboveThreshold as AboveThreshold
from .base import (
    Calibration as Calibration,
    Mechanism as Mechanism,
    Preview as Preview,
    PureMechanism as PureMechanism,
)
from .block_knorm import BlockNorm as BlockNorm, block_variances as block_variances
from .built_in import BUILT_IN as BUILT_IN
from .cell_selection_base import CellVisibility as CellVisibility
from .epsilon_or_rho_budget import MechanismBudget as MechanismBudget
from .exponential_interval_mechanism import ExponentialInterval as ExponentialInterval
from .gaussian import Gaussian as Gaussian
from .gaussian_threshold import GaussianThreshold as GaussianThreshold
from .knorm import (
    KNorm as KNorm,
    cell_variances as cell_variances,
    groups_by_size as groups_by_size,
)
from .knorm_ball_moments import BallMoments as BallMoments, unit_ball_moments as unit_ball_moments
from .knorm_ball_points import (
    Balls as Balls,
    CrossPolytopes as CrossPolytopes,
    draw_layer as draw_layer,
    layer_size as layer_size,
)
from .knorm_ball_radii import draw_from_balls as draw_from_balls, geometric_sum as geometric_sum
from .laplace import (
    DiscreteLaplace as DiscreteLaplace,
    Laplace as Laplace,
)
from .partition_selection import PartitionSelection as PartitionSelection
from .randomness import (
    Noise as Noise,
    Randomness as Randomness,
    Samplers as Samplers,
)
from .release_losses import Losses as Losses
from .selection import (
    BoundedRange as BoundedRange,
    Exponential as Exponential,
    PermuteAndFlip as PermuteAndFlip,
    bounded_range_losses as bounded_range_losses,
    permute_and_flip_log_probability as permute_and_flip_log_probability,
    with_relative_error as with_relative_error,
)
from .uniforms import WholeNumbers as WholeNumbers
