// The timeline: a row for each agent, coloured by allocation; decisions and finished subtasks above.

import { agentsOf, at, nameOf, initialOf, standing, subtaskName } from "./data.js";
import { colourOf, inkOn, safe } from "./look.js";

const ROW = 22;
const TOP = 34;
const EDGE = 8;
/** Height of the row of decisions, and how near to one is near enough. */
const MARKS = 17;
const TOUCH = 12;

/** One side's timeline. `choose` is told what was clicked: `{ step }`, `{ entity }` or `{ decision }`. */
export class Timeline {
  constructor(root, choose) {
    this.root = root;
    this.choose = choose;
    root.innerHTML = '<div class="names"></div><svg class="rows" role="group"></svg>';
    this.names = root.querySelector(".names");
    this.svg = root.querySelector("svg");
    this.scrubbing = false;
    this.svg.addEventListener("pointerdown", (event) => this.press(event));
    this.svg.addEventListener("pointermove", (event) => this.scrubbing && this.scrubTo(event));
    for (const kind of ["pointerup", "pointercancel"]) {
      this.svg.addEventListener(kind, () => (this.scrubbing = false));
    }
    // Without a pointer: by keyboard, or by what reads the page aloud.
    this.svg.addEventListener("keydown", (event) => event.key === "Enter" && this.pressMark(event));
    this.svg.addEventListener("click", (event) => event.detail === 0 && this.pressMark(event));
    this.names.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) choose({ entity: Number(button.dataset.entity) });
    });
  }

  /** Draw an episode; `steps` is the length of the axis, the same for both sides. */
  show(episode, steps) {
    this.episode = episode;
    this.steps = steps;
    const agents = agentsOf(episode);
    this.names.innerHTML = agents
      .map(
        (agent) =>
          `<button type="button" class="quiet" data-entity="${agent}" aria-label="${safe(nameOf(episode, agent))}">` +
          `<span class="long">${safe(nameOf(episode, agent))}</span>` +
          `<span class="short">${safe(initialOf(episode, agent))}</span></button>`,
      )
      .join("");
    const height = TOP + agents.length * ROW + 4;
    this.width = this.svg.clientWidth || 300;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.setAttribute("aria-label", `Timeline: ${episode.decisions.length} decisions in ${episode.length} steps`);
    this.svg.innerHTML =
      episode.decisions.map(({ step }) => this.ruler(step, height)).join("") +
      agents.map((agent, row) => this.agentRow(agent, TOP + row * ROW)).join("") +
      episode.deaths.map(([step, agent]) => this.death(step, TOP + agents.indexOf(agent) * ROW)).join("") +
      episode.completions.map(([step, subtask]) => this.completion(step, subtask)).join("") +
      episode.decisions.map((decision) => this.decision(decision)).join("") +
      `<line class="playhead" y1="0" y2="${height}"/>`;
    this.playhead = this.svg.querySelector(".playhead");
  }

  x(step) {
    return EDGE + (step / this.steps) * (this.width - 2 * EDGE);
  }

  /** Move the playhead, and mark what is chosen. */
  mark(time, selected) {
    const x = this.x(Math.min(time, this.episode.length));
    this.playhead.setAttribute("x1", x);
    this.playhead.setAttribute("x2", x);
    for (const button of this.names.children) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.entity) === selected?.entity));
    }
    for (const mark of this.svg.querySelectorAll(".decision")) {
      mark.classList.toggle("chosen", Number(mark.dataset.step) === selected?.decision);
    }
  }

  ruler(step, height) {
    return `<line class="ruler" x1="${this.x(step)}" x2="${this.x(step)}" y1="16" y2="${height}"/>`;
  }

  /** Stretches of one allocation, as long as the agent is there. */
  agentRow(agent, y) {
    const { episode } = this;
    const parts = [];
    let begin = null;
    for (let step = 0; step <= episode.length; step++) {
      const there = step < episode.length && at(episode.present[agent], step);
      const subtask = there ? at(episode.allocation[agent], step) : null;
      if (begin && begin.subtask !== subtask) {
        parts.push(this.stretch(begin.step, step, begin.subtask, y));
        begin = null;
      }
      if (there && !begin) begin = { step, subtask };
    }
    return parts.join("");
  }

  stretch(from, to, subtask, y) {
    const [left, right] = [this.x(from), this.x(to)];
    const colour = colourOf(subtask);
    const said = subtask < 0 ? "no subtask" : subtaskName(this.episode, subtask);
    const text =
      right - left > 11 && subtask >= 0
        ? `<text x="${(left + right) / 2}" y="${y + ROW / 2}" style="fill:${inkOn(colour)}">${subtask}</text>`
        : "";
    return (
      `<g><title>${safe(said)}, steps ${from} to ${to}</title><rect x="${left + 0.5}" y="${y + 2}" ` +
      `width="${Math.max(right - left - 1, 1)}" height="${ROW - 4}" rx="3" fill="${colour}"/>${text}</g>`
    );
  }

  decision({ step, why }) {
    const x = this.x(step);
    return (
      `<g class="decision" data-step="${step}" role="button" tabindex="0" ` +
      `aria-label="Decision at step ${step}: ${safe(why)}">` +
      `<title>decision at step ${step}: ${safe(why)}</title>` +
      `<path d="M${x - 5} 3 h10 l-5 9 z"/></g>`
    );
  }

  completion(step, subtask) {
    const { episode } = this;
    const [x, colour] = [this.x(step + 1), colourOf(subtask)];
    const said = `${subtaskName(episode, subtask)}: ${standing(episode, subtask, step + 1)}, step ${step + 1}`;
    return (
      `<g class="completion"><title>${safe(said)}</title>` +
      `<path d="M${x} 16 l8 8 l-8 8 l-8 -8 z" fill="${colour}"/>` +
      `<text x="${x}" y="24" style="fill:${inkOn(colour)}">${subtask}</text></g>`
    );
  }

  death(step, y) {
    const [x, middle] = [this.x(step + 1), y + ROW / 2];
    return (
      `<g class="death"><title>gone after step ${step}</title>` +
      `<path d="M${x - 4} ${middle - 4} l8 8 m0 -8 l-8 8"/></g>`
    );
  }

  /** In the row of decisions the nearest one is meant, however close they stand; elsewhere a moment. */
  press(event) {
    const box = this.svg.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const away = ({ step }) => Math.abs(this.x(step) - x);
    const [nearest] = this.episode.decisions.toSorted((one, other) => away(one) - away(other));
    if (y < MARKS && nearest && away(nearest) <= TOUCH) {
      this.choose({ decision: nearest.step });
      return;
    }
    this.scrubbing = true;
    this.svg.setPointerCapture(event.pointerId);
    this.scrubTo(event);
  }

  pressMark(event) {
    const mark = event.target.closest(".decision");
    if (mark) this.choose({ decision: Number(mark.dataset.step) });
  }

  scrubTo(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - EDGE) / (box.width - 2 * EDGE);
    this.choose({ step: Math.max(0, Math.min(this.steps, share * this.steps)) });
  }
}
