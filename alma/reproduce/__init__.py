"""Every figure of the paper: which runs it takes, the runs themselves, and what they show."""
