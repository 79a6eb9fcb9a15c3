"""Tests of mechanisms, which compare their draws and losses with their log-densities and claims."""
