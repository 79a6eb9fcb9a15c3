from .attribute_losses import AttributeLoss as AttributeLoss, losses_by_attribute as losses_by_attribute
from .epsilon_as_odds import (
    CertaintyGain as CertaintyGain,
    certainty_gains as certainty_gains,
    certainty_sentence as certainty_sentence,
)
from .markdown import markdown_report as markdown_report
from .plan_tree_with_losses import NodeRow as NodeRow, node_tree as node_tree
from .planned_result_rows import ResultRow as ResultRow, result_rows as result_rows
from .report_files_and_release_list import (
    releases_csv as releases_csv,
    releases_json as releases_json,
    write_report as write_report,
)
from .report_headlines import About as About
from .run_summary import RunSummary as RunSummary
from .step_row import StepRow as StepRow, step_rows as step_rows
from .terminal_renderer import terminal_report as terminal_report
from .text_plan_drawings import dot as dot, mermaid as mermaid, tree as tree
