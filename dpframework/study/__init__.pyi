from .hookspecs import hookimpl as hookimpl
from .registry import miner as miner
from .results import Results as Results
from .study import Study as Study
from .study_file import load_study as load_study
from .study_plan import StudyPlan as StudyPlan
