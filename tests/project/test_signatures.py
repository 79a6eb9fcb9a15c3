"""Public parameters and their defaults are those of the list, so that none moves by accident (tests/signatures.py)."""

import signatures


def test_public_parameters_and_defaults_are_those_of_the_list() -> None:
    listed = signatures.PAGE.read_text(encoding="utf-8").splitlines()
    found = list(signatures.lines())
    gone, new = sorted(set(listed) - set(found)), sorted(set(found) - set(listed))
    assert (gone, new) == ([], []), "if you mean it: python tests/signatures.py, and say so in docs/changelog.md"
    assert found == listed


def test_the_list_has_defaults_of_functions_of_values_and_of_methods() -> None:
    text = signatures.PAGE.read_text(encoding="utf-8")
    assert (
        "\ndpframework.verify.contributions.check_bounding(schema, unit, *, readers=None, tables=9, seed=0)\n" in text
    )
    assert ": repr=False" in text
