// What was recorded, and how to ask it. `page_data.py` says what is in it.

export const data = JSON.parse(document.getElementById("data").textContent);

export const NOBODY = -1;

/** The value of a column at a step: a column ends where nothing changes any more. */
export function at(column, step) {
  return column[Math.min(step, column.length - 1)];
}

export function isAgent(entity) {
  return entity < data.agents;
}

export function isPresent(episode, entity, step) {
  return at(episode.present[entity], step) === 1;
}

/** Agents that take part in an episode. */
export function agentsOf(episode) {
  return range(data.agents).filter((agent) => episode.present[agent].includes(1));
}

/** Subtasks there are in an episode, active from the beginning or later. */
export function subtasksOf(episode) {
  return range(data.subtasks).filter((subtask) => episode.active[subtask].includes(1));
}

/** The subtask of an entity; of an agent, the one it is allocated to. */
export function subtaskOf(episode, entity, step) {
  return at(isAgent(entity) ? episode.allocation[entity] : episode.subtask[entity], step);
}

export function markerOf(episode, entity) {
  return episode.scene ? episode.scene.markers[entity] : null;
}

export function nameOf(episode, entity) {
  const name = markerOf(episode, entity)?.name ?? (isAgent(entity) ? "agent" : "entity");
  return `${name} ${isAgent(entity) ? entity : entity - data.agents}`;
}

/** A short name, for narrow places. */
export function initialOf(episode, entity) {
  return `${markerOf(episode, entity)?.letter || "a"}${entity}`;
}

export function subtaskName(episode, subtask) {
  return `${episode.scene?.subtask ?? "subtask"} ${subtask}`;
}

/** How a subtask stands, in words; a task that does not say is known to be active or not. */
export function standing(episode, subtask, step) {
  const said = episode.scene?.standing[subtask];
  if (said) return at(said, step);
  return at(episode.active[subtask], step) ? "active" : "finished";
}

/** Where a subtask is: the middle of what belongs to it and is there. */
export function placeOf(episode, subtask, step, positionOf) {
  const members = range(episode.present.length).filter(
    (entity) =>
      !isAgent(entity) && isPresent(episode, entity, step) && subtaskOf(episode, entity, step) === subtask,
  );
  if (!members.length) return null;
  const places = members.map(positionOf);
  return [0, 1].map((axis) => places.reduce((sum, place) => sum + place[axis], 0) / places.length);
}

/** What an agent thinks of its available actions, the best first; null when there is nothing to ask. */
export function ratingsOf(episode, agent, step) {
  const row = episode.ratings?.[agent][step];
  if (!row) return null;
  const found = [];
  for (let i = 0; i < row.length; i += 3) found.push({ action: row[i], value: row[i + 1], target: row[i + 2] });
  return found.sort((one, other) => other.value - one.value);
}

/** Whether an agent sees an entity under its subtask's mask. */
export function sees(episode, agent, entity, step) {
  return !episode.sees || at(episode.sees[agent], step)[entity] === "1";
}

/** An action in words, with what it is aimed at. */
export function actionName(episode, action, target) {
  const name = data.actions[action];
  return target >= 0 ? `${name} → ${nameOf(episode, target)}` : name;
}

export function range(count) {
  return Array.from({ length: count }, (_, i) => i);
}

/** A number as it is shown everywhere. */
export function number(value, digits = 2) {
  return value.toFixed(digits).replace("-", "−");
}
