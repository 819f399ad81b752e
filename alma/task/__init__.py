"""The contract between tasks and learners: everything a learner may know of an environment.

A *composite task* consists of several subtasks that run in parallel. A task is a handful of pure functions
of a small state; networks see the state only through a `View`. Array sizes are static; masks say how many
entries are in use (True: in use). Shapes are written with these letters:

    A agents    E entities (the agents first, then the rest)    M subtasks    U actions
    F features of an entity    R relations between an agent and an entity

`alma.check_task` holds a task to all of this.
"""
