"""What an optional package is needed for: one sentence where it is missing, and other failures as they are."""

from __future__ import annotations

import pytest

from dpframework.facts.errors import needing_scikit_learn


@pytest.mark.parametrize("name", ["sklearn", "sklearn.tree"])
def test_a_missing_package_is_told_with_what_needs_it(name: str) -> None:
    told = pytest.raises(ImportError, match=r"^trees needs scikit-learn: pip install 'dpframework\[sklearn\]'$")
    with told, needing_scikit_learn("trees"):
        raise ModuleNotFoundError(name=name)


def test_another_package_that_is_missing_is_another_failure() -> None:
    with pytest.raises(ModuleNotFoundError, match="other"), needing_scikit_learn("trees"):
        raise ModuleNotFoundError("other", name="other")
