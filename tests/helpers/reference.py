"""A reference implementation of SaveTheCity in plain Python, to compare the fast one with.

An agent is [type, x, y]; a building is a dict. The caller tosses coins.
"""

from itertools import combinations

F, B, G = range(3)
STRIDES = [(0, 1), (1, 0), (0, -1), (-1, 0), (0, 2), (2, 0), (0, -2), (-2, 0)]
STAY, FIGHT, BUILD, FREEZE = 0, 9, 10, 11


def beside(agent, buildings):
    """The building next to an agent, if any."""
    near = [b for b in buildings if abs(b["x"] - agent[1]) + abs(b["y"] - agent[2]) == 1]
    assert len(near) <= 1
    return near[0] if near else None


def legal(agents, buildings, who):
    """The actions an agent may take."""
    kind, x, y = agents[who]
    taken = {(a[1], a[2]) for a in agents} | {(b["x"], b["y"]) for b in buildings}
    actions = {STAY}
    for number, (dx, dy) in enumerate(STRIDES, start=1):
        if number > 4 and kind != G:
            continue
        goal = (x + dx, y + dy)
        if 0 <= goal[0] < 16 and 0 <= goal[1] < 16 and goal not in taken:
            actions.add(number)
    building = beside(agents[who], buildings)
    if building and building["fire"] > 0:
        actions |= {FIGHT} | ({FREEZE} if kind == G else set())
    elif building and 0 < building["health"] < 1:
        actions.add(BUILD)
    return actions


def destinations(agents, buildings, actions):
    """The cells that agents want to move to."""
    goals = []
    for who, (_, x, y) in enumerate(agents):
        moves = 1 <= actions[who] <= 8 and actions[who] in legal(agents, buildings, who)
        dx, dy = STRIDES[actions[who] - 1] if moves else (0, 0)
        goals.append((x + dx, y + dy))
    return goals


def settle(starts, goals, second_stays):
    """The cells of agents after conflicts: of two agents with the same cell, one goes back, in the order of agents.

    `second_stays(first, second)` tells whether the second agent keeps the cell.
    """
    places = list(goals)
    while len(set(places)) < len(places):
        for first, second in combinations(range(len(places)), 2):
            if places[first] == places[second]:
                back = first if second_stays(first, second) else second
                places[back] = starts[back]
    return places


def work(agents, buildings, actions):
    """One step of all buildings; returns the buildings and the unscaled reward of each."""
    after, rewards = [], []
    for building in buildings:
        crew = {FIGHT: [], BUILD: [], FREEZE: []}
        for who, agent in enumerate(agents):
            works = actions[who] in crew and actions[who] in legal(agents, buildings, who)
            if works and beside(agent, buildings) is building:
                crew[actions[who]].append(agent[0])
        new, reward = work_at(building, crew)
        after.append(new)
        rewards.append(reward)
    return after, rewards


def work_at(building, crew):
    """One step of one building, given the types of the agents at each kind of work."""
    new = dict(building)
    if not 0 < building["health"] < 1:
        return new, 0.0
    effect = sum(0.25 * {F: 1, B: 0.05, G: 0}[kind] for kind in crew[FIGHT])
    effect += 0.25 * 0.45 if B in crew[FIGHT] and G in crew[FIGHT] else 0
    fire = building["fire"] - effect if effect else building["fire"] * 1.1
    new["fire"] = min(max(fire, 0), 1)
    gain = sum(0.125 * {F: 0.05, B: 1, G: 0}[kind] for kind in crew[BUILD])
    gain += 0.125 * 0.45 if F in crew[BUILD] and G in crew[BUILD] else 0
    loss = 0 if crew[FREEZE] else 0.035 * (1 if building["fast"] else 0.5) * new["fire"]
    new["health"] = min(max(building["health"] + gain - loss, 0), 1)

    reward = 10 * (new["health"] - building["health"])
    if new["health"] == 1:
        return new, reward + 20
    if new["health"] == 0:
        new["fire"] = 0
        return new, reward - 20
    if building["fire"] > 0 and new["fire"] == 0:
        reward += 0.5
    new["timer"] -= 1
    if new["timer"] == 0:
        new["fire"], new["timer"] = 1, building["interval"]
    return new, reward
