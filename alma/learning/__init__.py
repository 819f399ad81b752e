"""What actors and allocators share when they learn: replay, learner state, schedules."""
