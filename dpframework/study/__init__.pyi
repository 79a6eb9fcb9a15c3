from .attribute_summary_study import describe as describe
from .hookspecs import hookimpl as hookimpl
from .miner_from_parameters import Share as Share
from .plugin_registry import miner as miner, share as share
from .results import Results as Results
from .study import Study as Study
from .study_file import load_study as load_study
from .study_plan_totals_and_findings import StudyPlan as StudyPlan
from .study_run import StudyRun as StudyRun
