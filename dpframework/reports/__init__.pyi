from .drawing import dot as dot, mermaid as mermaid, tree as tree
from .markdown import markdown_report as markdown_report
from .nodes import NodeRow as NodeRow, node_tree as node_tree
from .ran import Ran as Ran
from .steps import StepRow as StepRow, step_rows as step_rows
from .terminal import terminal_report as terminal_report
