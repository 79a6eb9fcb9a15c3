"""Numba kernels of redescriptions. Import them inside the functions that call them."""
