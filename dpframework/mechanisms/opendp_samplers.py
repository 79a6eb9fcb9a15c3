"""OpenDP's exact samplers, called without the conversions of its Python binding.

A call of the binding looks up types by their names and wraps its results, which takes longer than most draws. Here an
array of integers is passed to the library as it is, and the draws are copied out. The measurements (OpenDP's word for
mechanisms) are made by OpenDP's public functions and kept for later draws.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframework.facts.errors import InputError
from dpframework.mechanisms.lattice_rounding import Scores

Integers = NDArray[np.int64]
KEPT = 256  # the most measurements of each kind that are kept


def require_installed() -> None:
    """Check that the package opendp is installed, without importing it.

    Raises
    ------
    InputError
        If the package is not installed.
    """
    try:
        version("opendp")
    except PackageNotFoundError:
        raise InputError(
            "samplers 'opendp' need the package opendp; install it with: pip install 'dpframework[opendp]'"
        ) from None


def noise(kind: str, scale: float, size: int) -> Integers:
    """Draw `size` independent integers of discrete noise of a scale. `kind` is "laplace" or "gaussian"."""
    if not size:
        return np.zeros(0, dtype=np.int64)
    return _invoke(_noise(kind, scale), np.zeros(size, dtype=np.int64), np.int64)


def noisy_max(scores: Scores, scale: float, *, gumbel: bool) -> int:
    """Return the position of the largest score with Gumbel noise, or with exponential noise (permute-and-flip)."""
    found = _invoke(_noisy_max(scale, gumbel), np.ascontiguousarray(np.asarray(scores), dtype=np.int64), np.uintp)
    return int(found[0])


@functools.lru_cache(maxsize=KEPT)
def _noise(kind: str, scale: float) -> Any:
    # Importing opendp.prelude would import pandas, scikit-learn and scipy too, which takes 160 MiB and a second.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    domain = vector_domain(atom_domain(T="i64"))
    if kind == "laplace":
        return make_laplace(domain, l1_distance(T="i64"), scale=scale)
    return make_gaussian(domain, l2_distance(T="f64"), scale=scale)


@functools.lru_cache(maxsize=KEPT)
def _noisy_max(scale: float, gumbel: bool) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence, zero_concentrated_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    measure = zero_concentrated_divergence() if gumbel else max_divergence()
    return make_noisy_max(vector_domain(atom_domain(T="i64")), linf_distance(T="i64"), measure, scale=scale)


def _invoke(measurement: Any, array: Integers, kind: type[np.generic]) -> NDArray[Any]:
    """Return the draws of a measurement for an array of eight-byte numbers."""
    call = _library()
    # Without the library's functions, which another version of the binding may lack, the binding converts the array.
    if call is None:
        return np.atleast_1d(np.asarray(measurement(array), dtype=kind))
    return np.frombuffer(call(measurement, array), dtype=kind).copy()


@functools.cache
def _library() -> Callable[[Any, Integers], bytes] | None:
    """Return a function that invokes a measurement on an array and returns the bytes of its draws.

    Return None if this version of the binding does not have the functions that are needed.
    """
    try:
        from opendp._lib import FfiResult, FfiSlice, lib, unwrap

        pointer = ctypes.c_void_p
        given = {
            "opendp_data__slice_as_object": [pointer, ctypes.c_char_p],
            "opendp_core__measurement_invoke": [pointer, pointer],
            "opendp_data__object_as_slice": [pointer],
            "opendp_data__slice_free": [pointer],
            "opendp_data__object_free": [pointer],
        }
        as_object, invoke, as_slice, free_slice, free_object = (lib[name] for name in given)
    except (ImportError, AttributeError):
        return None
    for function, types in zip((as_object, invoke, as_slice, free_slice, free_object), given.values(), strict=True):
        function.argtypes, function.restype = types, FfiResult

    def make(result: Any) -> ctypes.c_void_p:
        if result.tag:
            unwrap(result, pointer)  # raises the library's error
        return ctypes.cast(result.payload.Ok, pointer)

    def call(measurement: Any, array: Integers) -> bytes:
        handed = make(as_object(ctypes.byref(FfiSlice(array.ctypes.data, len(array))), b"Vec<i64>"))
        try:
            drawn = make(invoke(measurement, handed))
        finally:
            free_object(handed)
        try:
            at = make(as_slice(drawn))
            slice_ = FfiSlice.from_address(at.value or 0)
            copied = ctypes.string_at(slice_.ptr, slice_.len * 8)
            free_slice(at)
            return copied
        finally:
            free_object(drawn)

    return call
