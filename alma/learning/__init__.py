"""What both levels need for learning: replay buffers, learner state, gradient steps and schedules."""
