"""Many runs with other options: sweeps over given ones, and hyperparameter search."""
