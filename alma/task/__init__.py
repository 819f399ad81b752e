"""The contract between tasks and learners: everything a learner may know of an environment."""
