// Charts of rewards, added up over time.

import { number, range, data, subtaskName, subtasksOf } from "./data.js";
import { colourOf, dashOf, safe } from "./look.js";

const HEIGHT = 120;
/** Least distance between two labels at the right, in pixels. */
const GAP = 11;
const LEFT = 36;
const RIGHT = 26;

/** The return of every side, and for each side the rewards of its subtasks. */
export class Charts {
  constructor(root) {
    this.root = root;
  }

  show(episodes, steps) {
    const several = episodes.length > 1;
    const returns = episodes.map((episode, side) => ({
      name: several ? `${side + 1}` : "",
      title: several ? data.sides[side].label : "return",
      colour: "var(--ink)",
      dash: side ? "6 4" : "",
      values: addedUp(episode.reward),
    }));
    const bySide = episodes.map((episode) =>
      subtasksOf(episode).map((subtask) => ({
        name: String(subtask),
        title: subtaskName(episode, subtask),
        colour: colourOf(subtask),
        dash: dashOf(subtask),
        values: addedUp(episode.subtask_rewards[subtask]),
      })),
    );
    this.charts = [
      { title: "Return", lines: returns },
      ...bySide.map((lines, side) => ({
        title: several ? `Reward of each subtask, ${side + 1}` : "Reward of each subtask",
        lines,
      })),
    ];
    this.steps = steps;
    this.width = this.root.clientWidth || 300;
    this.root.innerHTML = this.charts.map((chart) => this.chart(chart)).join("");
    this.playheads = [...this.root.querySelectorAll(".playhead")];
    this.notes = [...this.root.querySelectorAll("figcaption span")];
  }

  /** Move the playheads, and say what the lines are at. */
  mark(time) {
    const x = this.x(time);
    for (const line of this.playheads) {
      line.setAttribute("x1", x);
      line.setAttribute("x2", x);
    }
    this.charts.forEach(({ lines }, i) => {
      this.notes[i].textContent = lines
        .map(({ name, values }) => `${name && `${name}: `}${number(values[Math.min(Math.floor(time), values.length - 1)], 1)}`)
        .join("   ");
    });
  }

  x(time) {
    return LEFT + (time / this.steps) * (this.width - LEFT - RIGHT);
  }

  chart({ title, lines }) {
    const all = lines.flatMap(({ values }) => values);
    const [low, high] = [Math.min(0, ...all), Math.max(0, ...all) || 1];
    const y = (value) => HEIGHT - 8 - ((value - low) / (high - low)) * (HEIGHT - 20);
    // Labels stand at the ends of lines where there is room for all of them.
    const labelled = lines.length * GAP <= HEIGHT;
    const ends = spread(lines.map(({ values }) => y(values.at(-1))));
    const ticks = [low, 0, high]
      .filter((value) => value === 0 || Math.abs(y(value) - y(0)) > 12)
      .map(
        (value) =>
          `<line class="ruler" x1="${LEFT}" x2="${this.width - RIGHT}" y1="${y(value)}" y2="${y(value)}"/>` +
          `<text class="tick" x="${LEFT - 5}" y="${y(value)}">${number(value, 1)}</text>`,
      )
      .join("");
    const drawn = lines
      .map(({ name, title: said, colour, dash, values }, i) => {
        const points = values.map((value, step) => `${this.x(step).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
        const end = this.x(values.length - 1);
        return (
          `<g><title>${safe(said)}: ${number(values.at(-1))}</title>` +
          `<polyline points="${points}" stroke="${colour}" stroke-dasharray="${dash}"/>` +
          (labelled ? `<text x="${end + 5}" y="${ends[i]}">${name}</text></g>` : "</g>")
        );
      })
      .join("");
    return (
      `<figure><figcaption>${title} <span></span></figcaption>` +
      `<svg viewBox="0 0 ${this.width} ${HEIGHT}" height="${HEIGHT}" role="img" aria-label="${title} over time">` +
      `${ticks}${drawn}<line class="playhead" y1="0" y2="${HEIGHT}"/></svg></figure>`
    );
  }
}

/** Sums so far: one more than there are rewards. */
function addedUp(rewards) {
  let sum = 0;
  return [0, ...rewards.map((reward) => (sum += reward))];
}

/** Heights of labels, moved apart where they would cover each other. */
function spread(heights) {
  const order = range(heights.length).sort((one, other) => heights[one] - heights[other]);
  const result = [];
  let lowest = -Infinity;
  for (const i of order) {
    lowest = Math.max(heights[i], lowest + GAP);
    result[i] = lowest;
  }
  const over = Math.max(0, lowest - (HEIGHT - 6));
  return result.map((height) => height - over);
}
