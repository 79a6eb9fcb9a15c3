"""NOT private: evaluation beside the truth, experiments, the synthetic clinic and the demo."""
