"""Distances of values as a result: blended with overlap, printed, drawn, and read again."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest
from dpframework_distance.value_distances import EVEN, LearnedDistances, ValueDistances

import dpframework as dpf

TOWN, ILL = dpf.Categorical("town", ["a", "b", "c"]), dpf.Boolean("ill")
MATRIX = np.array([[0, 0.2, 0.6], [0.2, 0, 0.4], [0.6, 0.4, 0]])


def distances(**changes: Any) -> ValueDistances:
    usual = ValueDistances(TOWN, ("ill",), MATRIX, np.array([0.5, 0.3, 0.2]), 0.8)
    return attrs.evolve(usual, **changes)


@pytest.mark.parametrize("context", [("ill",), ()])
@pytest.mark.parametrize("signal", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("shares", [[0.5, 0.3, 0.2], [1 / 3] * 3, [0.9, 0.1, 0.0]])
def test_a_blend_has_the_weight_of_overlap_and_keeps_the_learned_order(
    context: tuple[str, ...], signal: float, shares: list[float]
) -> None:
    p = np.array(shares)
    one = distances(context=context, signal=signal, shares=p)
    squares, overlap = one.blend() ** 2, 1 - np.eye(3)
    assert p @ squares @ p == pytest.approx(1 - (p**2).sum())  # as two random rows have it in overlap
    weight = signal / 2 if context else signal / 4
    learned = (squares - (1 - weight) * overlap) * (p @ MATRIX**2 @ p)
    assert learned == pytest.approx(weight * MATRIX**2 * (p @ overlap @ p), abs=1e-12)
    assert pytest.approx(one.blend()) == one.blend().T


def test_of_values_that_nothing_tells_apart_a_blend_is_overlap() -> None:
    assert distances(matrix=np.zeros((3, 3))).blend() == pytest.approx(1 - np.eye(3))
    for asked in (ValueDistances.blend, ValueDistances.unevenness.fget):
        with pytest.raises(dpf.InputError, match="come without shares of the rows"):
            asked(distances(shares=None))  # type: ignore[misc]


def learned(*of: ValueDistances, covered: bool = True) -> LearnedDistances:
    return LearnedDistances(dpf.Schema([TOWN, ILL]), {one.attribute.name: one for one in of}, covered)


def of_ill(share: float) -> ValueDistances:
    return ValueDistances(ILL, (), np.array([[0, 1.0], [1, 0]]), np.array([share, 1 - share]))


def test_where_values_are_nearly_as_common_overlap_is_all() -> None:
    even = np.array([EVEN / 3, 0.3, 0.3])
    assert distances(shares=even).unevenness == pytest.approx(EVEN)
    exactly = np.array([0.25, 0.25, 0.5])
    assert distances(shares=exactly).unevenness == 1.5
    both = learned(distances(shares=exactly), of_ill(0.45))  # 1.5 and 1.1
    assert both.blend()["town"] == pytest.approx(distances(shares=exactly).blend())
    same = learned(distances(shares=np.array([0.4, 0.3, 0.3])), of_ill(0.4))  # 1.2 each
    assert np.mean([one.unevenness for one in same.values()]) == pytest.approx(EVEN)
    less = learned(distances(shares=np.array([0.39, 0.31, 0.3])), of_ill(0.41))
    assert less.blend()["town"] == pytest.approx(1 - np.eye(3))
    assert less.blend()["ill"] == pytest.approx(1 - np.eye(2))


def test_distances_are_found_by_labels_and_printed_with_two_digits() -> None:
    one = distances(attribute=attrs.evolve(TOWN, values=["a", "b" * 18, "c" * 19]))
    assert one.between("a", "c" * 19) == 0.6
    assert str(one).splitlines() == [
        "town, from ill",
        f"{' ' * 18}    a {'b' * 18} {'c' * 17}…",
        f"a{' ' * 17} 0.00               0.20               0.60",
        f"{'b' * 18} 0.20               0.00               0.40",
        f"{'c' * 17}… 0.60               0.40               0.00",
    ]
    assert str(distances(context=())).startswith("town, from shares of rows\n")
    with pytest.raises(dpf.InputError, match="attribute 'town' has no value 'd'"):
        distances().between("a", "d")
    assert distances().to_frame().row(5) == ("town", "b", "c", 0.4)
    assert distances().to_csv().splitlines()[1] == "a,0.0,0.2,0.6"
    (matrix,) = distances().matrices()
    assert (matrix.title, matrix.rows) == ("distances of town, from ill", ("a", "b", "c"))


def test_a_result_is_a_mapping_and_read_again() -> None:
    found = learned(distances(), of_ill(0.45))
    assert (len(found), list(found), "town" in found, "age" in found) == (2, ["town", "ill"], True, False)
    assert found.contexts == {"town": ("ill",), "ill": ()}
    assert len(found.matrices()) == 2
    assert found.to_frame().height == 9 + 4
    assert str(found) == f"{found['town']}\n\n{found['ill']}"
    assert str(learned(distances(), covered=False)).startswith("not private\n\ntown")
    with pytest.raises(dpf.InputError, match="no distances of attribute 'twn' were learned; did you mean 'town'"):
        found["twn"]
    for one in (found, learned(distances(shares=None)), learned(distances(), covered=False)):
        again = LearnedDistances.from_json(one.to_json())
        assert again.to_dict() == one.to_dict()
        assert again.covered == one.covered
    assert found.to_dict()["distances"][0]["signal"] == 0.8
    assert "private" not in found.to_dict()


@pytest.mark.parametrize(
    "wrong",
    [
        {"distances": MATRIX[:2].tolist()},
        {"distances": (-MATRIX).tolist()},
        {"shares": [0.5, 0.5]},
        {"shares": [0.5, 0.6, -0.1]},
        {"signal": 1.01},
        {"signal": -0.01},
    ],
)
def test_what_is_no_distance_share_or_signal_is_refused(wrong: dict[str, Any]) -> None:
    form = learned(distances()).to_dict()
    for signal in (0, 1):
        form["distances"][0] = {**form["distances"][0], "signal": signal}
        assert LearnedDistances.read(form)["town"].signal == signal
    form["distances"][0] = {**form["distances"][0], **wrong}
    with pytest.raises(dpf.InputError, match="attribute 'town' needs one"):
        LearnedDistances.read(form)
