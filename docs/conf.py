"""The documentation site: `sphinx-build -n -W --keep-going docs FOLDER`. Pages are Markdown; nothing is fetched."""

import sys
from pathlib import Path

from dpframework.version import __version__

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "dpframework"
author = "the dpframework authors"
project_copyright = "the dpframework authors; licence Apache-2.0"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "navigation",
    "public_names",
    "name_index",
    "fences",
    "equations",
]
nitpicky = True
exclude_patterns = ["extensions", "**/.*"]  # caches of tools hold pages too

# Pages
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"  # the extension equations
highlight_language = "none"  # a block without a language is no Python

# Reference: docstrings are in NumPy's style, and their single backticks mark code
default_role = "code"
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {
    "members": True,
    # made by scikit-learn, whose words they speak
    "exclude-members": "set_fit_request, set_predict_request, set_predict_proba_request, set_score_request",
}
autosummary_generate = False  # its tables lead to pages that are there
maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_use_unqualified_type_names = True
viewcode_line_numbers = True

# Every reference must lead somewhere, but for these:
nitpick_ignore_regex = [
    # names of other projects: their inventories are not fetched, so that the site can be built without a network
    (r"py:.*", r"(abc|ast|builtins|collections|contextlib|datetime|decimal|enum|fractions|importlib|os|pathlib)\..*"),
    (r"py:.*", r"(sqlite3|types|typing)\..*"),
    (
        r"py:.*",
        r"(attrs|dp_accounting|jinja2|narwhals|networkx|np|numpy|nw|nx|opendp|pl|pluggy|polars|rich|sklearn)\..*",
    ),
    (r"py:.*", r"ArrayLike|Decimal|Floats|Fraction|Group|Integers|NDArray|RenderableType|Validator"),
    # short names of unions of types, in the room of formulas
    (r"py:.*", r"Kernel|Number|Scored|Shape|_Bound|_Value"),
    # a class of accountants and a union of what a transcript holds, in the verification kit
    (r"py:.*", r"Kind|Event"),
    # short names of the cells and domains of expressions, in the room of facts
    (r"py:.*", r"Domain|RowCells|Cells|Columns|Units|Aggregating|Value"),
    # rows as an engine holds them: whatever it likes
    (r"py:.*", r"Rows"),
    # private types, in signatures of functions that only their own package calls
    (r"py:.*", r"dpframework(_trees|_greedy|_distance|_tables)?\.[\w.]+\._\w+"),
    # type variables
    (r"py:.*", r"(dpframework(_trees|_greedy|_distance|_tables)?\.[\w.]+\.)?[A-Z]"),
]

# What can be run or saved has a button that copies it; what a command prints has none
copybutton_selector = ", ".join(f"div.highlight-{kind} pre" for kind in ("python", "sh", "toml"))

html_theme = "furo"
html_title = f"dpframework {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "static" / "search_scores.js")
html_copy_source = False
html_show_sphinx = False
