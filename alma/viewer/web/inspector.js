// The details of what is chosen: an agent, something else on the map, or a decision.

import {
  NOBODY, actionName, agentsOf, at, initialOf, isAgent, isPresent, nameOf, number, ratingsOf, standing, data,
  subtaskName, subtaskOf, markerOf,
} from "./data.js";
import { chip, colourOf, safe, shapeMarkup } from "./look.js";

const HINT =
  "<h2>Details</h2><p>Click an agent, on the map or in the timeline, to see what it thinks of its actions. " +
  "Click a decision (&#9660;) to see which allocations were considered.</p>";

/** What to write about a moment: `{ side, episode, time, selected, sight }`. */
export function describe({ side, episode, time, selected, sight }) {
  if (!selected) return HINT;
  const of = data.sides.length > 1 ? `<p class="of">${selected.side + 1}: ${safe(side.label)}</p>` : "";
  if (selected.decision !== undefined) return of + describeDecision(episode, selected.decision);
  return of + describeEntity(episode, selected.entity, Math.min(Math.floor(time), episode.length), sight);
}

// ---- who and what is on the map

function describeEntity(episode, entity, step, sight) {
  const marker = markerOf(episode, entity);
  const subtask = subtaskOf(episode, entity, step);
  const there = isPresent(episode, entity, step);
  const mark = shapeMarkup(marker?.shape ?? "disc", colourOf(subtask));
  return (
    `<h2>${mark}${safe(nameOf(episode, entity))}</h2>` +
    (there ? "" : "<p>It is gone.</p>") +
    `<dl>${describeSubtask(episode, entity, subtask, step)}${marker ? describeMarker(marker, step) : ""}</dl>` +
    (isAgent(entity) && there ? describeActions(episode, entity, step, sight) : "")
  );
}

function describeSubtask(episode, entity, subtask, step) {
  const what = isAgent(entity) ? "allocated to" : "belongs to";
  if (subtask === NOBODY) return `<dt>${what}</dt><dd>no subtask</dd>`;
  const stands = standing(episode, subtask, step);
  const who = agentsOf(episode).filter(
    (agent) => agent !== entity && isPresent(episode, agent, step) && at(episode.allocation[agent], step) === subtask,
  );
  const others = who.map((agent) => safe(nameOf(episode, agent))).join(", ") || "nobody";
  return (
    `<dt>${what}</dt><dd>${chip(subtask)} ${safe(subtaskName(episode, subtask))}, ${safe(stands)}</dd>` +
    `<dt>${isAgent(entity) ? "together with" : "sent there"}</dt><dd>${others}</dd>`
  );
}

function describeMarker(marker, step) {
  const [x, y, status] = [marker.x, marker.y, marker.status].map((column) => at(column, step));
  const bars = Object.entries(marker.bars).map(([name, column]) => {
    const share = at(column, step);
    return `<dt>${safe(name)}</dt><dd><meter min="0" max="1" value="${share}"></meter> ${Math.round(100 * share)} %</dd>`;
  });
  return (
    (status ? `<dt>state</dt><dd>${safe(status)}</dd>` : "") +
    bars.join("") +
    `<dt>place</dt><dd>${number(x, 1)} east, ${number(y, 1)} north</dd>`
  );
}

function describeActions(episode, agent, step, sight) {
  const ratings = ratingsOf(episode, agent, step);
  if (!ratings) return step < episode.length ? "" : "<p>The episode is over.</p>";
  const chosen = at(episode.actions[agent], step);
  const [high, low] = [ratings[0].value, ratings.at(-1).value];
  const rows = ratings.map(({ action, value, target }) => {
    const share = high > low ? (value - low) / (high - low) : 1;
    const taken = action === chosen;
    return (
      `<li class="${taken ? "chosen" : ""}" data-action="${action}">` +
      `<span class="what">${safe(actionName(episode, action, target))}${taken ? "<em>chosen</em>" : ""}</span>` +
      `<span class="bar"><i style="width:${6 + 94 * share}%"></i></span><b>${number(value, 3)}</b></li>`
    );
  });
  return (
    `<label class="toggle"><input id="sight" type="checkbox" ${sight ? "checked" : ""}> only what it sees</label>` +
    `<h3>Utilities of its actions</h3><ol class="values">${rows.join("")}</ol>`
  );
}

// ---- decisions

function describeDecision(episode, step) {
  const { why, options, values, counts } = episode.decisions.find((decision) => decision.step === step);
  const taken = taking(episode, step);
  const head = `<h2>Decision at step ${step}</h2><p>${safe(why)[0].toUpperCase()}${safe(why).slice(1)}.</p>`;
  if (!options) {
    return `${head}<ol class="options">${optionRow(episode, step, taken, { tag: "taken" })}</ol>`;
  }
  const found = options.findIndex((option) => option.every((subtask, agent) => subtask === taken[agent]));
  const second = options.findIndex((_, i) => i !== found);
  const [high, low] = [values[0], values.at(-1)];
  const rows = options.map((option, i) =>
    optionRow(episode, step, option, {
      value: values[i],
      share: high > low ? (values[i] - low) / (high - low) : 1,
      count: counts[i],
      tag: i === found ? "taken" : i === second ? "runner-up" : "",
    }),
  );
  const total = counts.reduce((sum, count) => sum + count, 0);
  return (
    `${head}<h3>${options.length} different allocations among ${total} candidates, by the critic's value</h3>` +
    `<ol class="options">${rows.join("")}</ol>`
  );
}

/** The allocation that was made. */
function taking(episode, step) {
  return episode.allocation.map((column) => at(column, step));
}

function optionRow(episode, step, option, { value, share, count, tag }) {
  const chips = agentsOf(episode)
    .filter((agent) => isPresent(episode, agent, step))
    .map((agent) => chip(option[agent], `<small>${safe(initialOf(episode, agent))}</small>`));
  const often = count > 1 ? `<span class="often" title="${count} of the candidates">${count}&times;</span>` : "";
  const bar =
    value === undefined ? "" : `<span class="bar"><i style="width:${6 + 94 * share}%"></i></span><b>${number(value, 3)}</b>`;
  return (
    `<li tabindex="0" class="${tag}" data-option="${option.join(",")}">` +
    `<span class="chips">${chips.join("")}${tag ? `<em>${tag}</em>` : ""}${often}</span>${bar}</li>`
  );
}
