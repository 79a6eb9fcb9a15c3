"""Everything that is not private, namely evaluation, experiments, the synthetic clinic and the demo."""
