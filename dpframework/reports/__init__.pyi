from .drawing import dot as dot, mermaid as mermaid, tree as tree
from .facts import (
    NodeRow as NodeRow,
    Ran as Ran,
    StepRow as StepRow,
    node_tree as node_tree,
    step_rows as step_rows,
)
from .markdown import markdown_report as markdown_report
from .terminal import terminal_report as terminal_report
