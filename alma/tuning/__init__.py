"""Many runs with different options: sweeps over given values, and hyperparameter search."""
