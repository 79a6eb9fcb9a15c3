"""Plans at random, for properties that hold for every plan."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

import dpframework as dpf


def compositions(
    leaves: st.SearchStrategy[dpf.plan.Node],
    *,
    cuts: st.SearchStrategy[Any],
    names: st.SearchStrategy[str],
    most_leaves: int,
    most_times: int,
) -> st.SearchStrategy[dpf.plan.Node]:
    """Compose leaves in every way that there is."""
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(
                lambda p, n: dpf.sequential(*p, name=n), st.lists(inner, min_size=1, max_size=3), st.none() | names
            ),
            st.builds(lambda p: dpf.either(*p), st.lists(inner, min_size=1, max_size=3)),
            st.builds(dpf.repeat, st.integers(1, most_times), inner),
            st.builds(lambda p, by, n: dpf.parallel(p, by=by, name=n), inner, cuts, st.none() | names),
        ),
        max_leaves=most_leaves,
    )
