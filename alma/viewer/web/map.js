// The map: a canvas with everything a scene describes, at any moment between two steps.

import { NOBODY, at, data, isAgent, isPresent, placeOf, range, sees, subtaskOf } from "./data.js";
import { colourOf, inkOn, themed, trace } from "./look.js";

const FADED = 0.1;

/** Draws one side's episodes. */
export class MapView {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
  }

  /** Draw a moment: `{ episode, time, selected, sight, preview }`. */
  draw(moment) {
    const { episode, time } = moment;
    this.moment = moment;
    this.step = Math.min(Math.floor(time), episode.length);
    this.scene = episode.scene;
    this.fit();
    this.pen.clearRect(0, 0, this.width, this.height);
    this.drawGround();
    const there = range(episode.present.length).filter(
      (entity) => this.scene.markers[entity] && isPresent(episode, entity, this.step),
    );
    for (const agent of there.filter(isAgent)) this.drawLink(agent);
    for (const entity of there.filter((entity) => !isAgent(entity))) this.drawThing(entity);
    for (const [from, to, kind] of at(this.scene.lines, this.step)) this.drawStroke(from, to, kind);
    for (const agent of there.filter(isAgent)) this.drawThing(agent);
  }

  /** As many pixels as the screen has. */
  fit() {
    const [across, up] = this.scene.size;
    const sharpness = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = (this.width * up) / across;
    this.scale = this.width / across;
    const [wide, high] = [this.width, this.height].map((size) => Math.round(size * sharpness));
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
    }
    this.pen.setTransform(sharpness, 0, 0, sharpness, 0, 0);
  }

  /** From the map to the canvas. */
  toCanvas([x, y]) {
    return [x * this.scale, this.height - y * this.scale];
  }

  /** Where an entity is, on its way to where it will be at the next step. */
  positionOf(entity) {
    const { episode, time } = this.moment;
    const marker = this.scene.markers[entity];
    const next = Math.min(this.step + 1, episode.length);
    const share = isPresent(episode, entity, next) ? Math.min(time, episode.length) - this.step : 0;
    return [marker.x, marker.y].map((column) => {
      const now = at(column, this.step);
      return now + share * (at(column, next) - now);
    });
  }

  /** Whether an entity is hidden by the mask of the agent whose sight is shown. */
  isHidden(entity) {
    const { episode, selected, sight } = this.moment;
    return sight && !sees(episode, selected.entity, entity, Math.min(this.step, episode.length - 1));
  }

  drawGround() {
    const pen = this.pen;
    pen.fillStyle = themed("--ground");
    pen.fillRect(0, 0, this.width, this.height);
    if (this.scene.grid) this.drawGrid();
    for (const place of this.scene.places.filter(({ radius }) => radius > 0)) {
      const [x, y] = this.toCanvas(place.at);
      const colour = place.subtask === null ? themed("--faint") : colourOf(place.subtask);
      pen.beginPath();
      pen.arc(x, y, place.radius * this.scale, 0, 2 * Math.PI);
      pen.fillStyle = `${colour}22`;
      pen.fill();
      pen.strokeStyle = colour;
      pen.lineWidth = 1.5;
      pen.stroke();
      const name = place.subtask === null ? "" : `${place.subtask} `;
      this.write(name + at(place.label, this.step), x, y + (place.radius + 0.7) * this.scale, 12, themed("--ink"));
    }
  }

  drawGrid() {
    const pen = this.pen;
    pen.beginPath();
    for (const i of range(this.scene.size[0] + 1)) {
      pen.moveTo(i * this.scale, 0);
      pen.lineTo(i * this.scale, this.height);
    }
    for (const i of range(this.scene.size[1] + 1)) {
      pen.moveTo(0, i * this.scale);
      pen.lineTo(this.width, i * this.scale);
    }
    pen.strokeStyle = themed("--grid");
    pen.lineWidth = 1;
    pen.stroke();
  }

  /** The line from an agent to its subtask; to that of a proposal that is looked at, if there is one. */
  drawLink(agent) {
    const { episode, preview, selected, sight } = this.moment;
    const subtask = preview ? preview[agent] : subtaskOf(episode, agent, this.step);
    if (subtask === NOBODY) return;
    const end = placeOf(episode, subtask, this.step, (entity) => this.positionOf(entity));
    if (!end) return;
    const chosen = selected?.entity === agent;
    const pen = this.pen;
    pen.save();
    pen.globalAlpha = sight && !chosen ? FADED : chosen || preview ? 0.95 : 0.7;
    pen.setLineDash(preview ? [6, 5] : []);
    this.line(this.toCanvas(this.positionOf(agent)), this.toCanvas(end), colourOf(subtask), chosen ? 5 : 3);
    pen.restore();
  }

  drawStroke(from, to, kind) {
    const { episode } = this.moment;
    const bothThere = [from, to].every((entity) => isPresent(episode, entity, this.step));
    if (!bothThere || this.isHidden(from) || this.isHidden(to)) return;
    const [start, end] = [from, to].map((entity) => this.toCanvas(this.positionOf(entity)));
    this.pen.save();
    this.pen.setLineDash(kind === "help" ? [2, 3] : []);
    this.line(start, end, data.colours.lines[kind], 2);
    this.pen.restore();
  }

  line(start, end, colour, width) {
    const pen = this.pen;
    pen.beginPath();
    pen.moveTo(...start);
    pen.lineTo(...end);
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }

  drawThing(entity) {
    const { episode, preview, selected } = this.moment;
    const marker = this.scene.markers[entity];
    const [x, y] = this.toCanvas(this.positionOf(entity));
    const radius = this.radiusOf(marker);
    const subtask = preview && isAgent(entity) ? preview[entity] : subtaskOf(episode, entity, this.step);
    const colour = colourOf(subtask);
    const over = !isAgent(entity) && subtask !== NOBODY && !at(episode.active[subtask], this.step);
    const pen = this.pen;
    pen.save();
    pen.globalAlpha = this.isHidden(entity) ? FADED : 1;
    if (selected?.entity === entity) this.drawHalo(x, y, radius);
    trace(pen, marker.shape, x, y, radius);
    pen.fillStyle = over ? themed("--over") : colour;
    pen.fill();
    pen.lineWidth = isAgent(entity) ? 2 : 1.5;
    pen.strokeStyle = isAgent(entity) ? themed("--ink") : over ? colour : themed("--ground");
    pen.stroke();
    this.drawIcons(marker, x, y, radius);
    const letter = marker.letter || (isAgent(entity) || subtask === NOBODY ? "" : String(subtask));
    if (!this.strength(marker, "tick") && !this.strength(marker, "cross")) {
      this.write(letter, x, y, Math.max(9, 0.95 * radius), over ? themed("--ink") : inkOn(colour), true);
    }
    this.drawBars(marker, x, y, radius);
    pen.restore();
  }

  /** Things stay large enough to be seen and touched on a small map. */
  radiusOf(marker) {
    return Math.max(marker.radius * this.scale, 7);
  }

  drawHalo(x, y, radius) {
    const pen = this.pen;
    pen.beginPath();
    pen.arc(x, y, radius * 1.55 + 3, 0, 2 * Math.PI);
    pen.strokeStyle = themed("--accent");
    pen.lineWidth = 3;
    pen.stroke();
  }

  drawBars(marker, x, y, radius) {
    const pen = this.pen;
    const [wide, high] = [2 * radius, Math.max(3, 0.24 * radius)];
    const shown = Object.entries(marker.bars).filter(([name]) => data.colours.bars[name]);
    shown.forEach(([name, column], row) => {
      const top = y - radius * 1.15 - (high + 1) * (row + 1);
      pen.fillStyle = themed("--over");
      pen.fillRect(x - wide / 2, top, wide, high);
      pen.fillStyle = data.colours.bars[name];
      pen.fillRect(x - wide / 2, top, wide * at(column, this.step), high);
    });
  }

  /** How much of an icon there is, now. */
  strength(marker, icon) {
    return marker.icons[icon] ? at(marker.icons[icon], this.step) : 0;
  }

  drawIcons(marker, x, y, radius) {
    const [clock, flame, tick, cross] = ["clock", "flame", "tick", "cross"].map((icon) => this.strength(marker, icon));
    if (clock) this.drawClock(x + 0.75 * radius, y - 0.75 * radius, 0.42 * radius, clock);
    if (flame) this.drawFlame(x - 0.95 * radius, y + 0.5 * radius, radius * (0.45 + 0.5 * flame));
    if (tick) this.drawPath(x, y, radius, [[-0.45, 0.05], [-0.1, 0.4], [0.5, -0.4]]);
    if (cross) {
      this.drawPath(x, y, radius, [[-0.4, -0.4], [0.4, 0.4]]);
      this.drawPath(x, y, radius, [[-0.4, 0.4], [0.4, -0.4]]);
    }
  }

  drawPath(x, y, radius, points) {
    const pen = this.pen;
    pen.beginPath();
    points.forEach(([dx, dy], i) => pen[i ? "lineTo" : "moveTo"](x + dx * radius, y + dy * radius));
    pen.strokeStyle = themed("--ink");
    pen.lineWidth = Math.max(2, 0.2 * radius);
    pen.lineCap = "round";
    pen.stroke();
  }

  /** A pie that runs empty. */
  drawClock(x, y, radius, share) {
    const pen = this.pen;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 2 * Math.PI);
    pen.fillStyle = themed("--ground");
    pen.fill();
    pen.strokeStyle = themed("--ink");
    pen.lineWidth = 1;
    pen.stroke();
    pen.beginPath();
    pen.moveTo(x, y);
    pen.arc(x, y, radius, -Math.PI / 2 - 2 * Math.PI * share, -Math.PI / 2);
    pen.fillStyle = themed("--ink");
    pen.fill();
  }

  /** A drop with its tip up; its size is the strength of the fire. */
  drawFlame(x, y, size) {
    const pen = this.pen;
    const [outer, inner] = data.colours.flame;
    for (const [scale, colour] of [[1, outer], [0.55, inner]]) {
      const s = size * scale;
      const base = y + 0.35 * size;
      pen.beginPath();
      pen.moveTo(x, base - 1.7 * s);
      pen.bezierCurveTo(x + 0.25 * s, base - 1.1 * s, x + 0.75 * s, base - 0.9 * s, x + 0.5 * s, base - 0.2 * s);
      pen.bezierCurveTo(x + 0.3 * s, base + 0.1 * s, x - 0.3 * s, base + 0.1 * s, x - 0.5 * s, base - 0.2 * s);
      pen.bezierCurveTo(x - 0.75 * s, base - 0.9 * s, x - 0.2 * s, base - 1.0 * s, x, base - 1.7 * s);
      pen.fillStyle = colour;
      pen.fill();
      if (scale === 1) {
        pen.strokeStyle = "#ffffff";
        pen.lineWidth = 1;
        pen.stroke();
      }
    }
  }

  write(text, x, y, size, colour, bold = false) {
    const pen = this.pen;
    pen.font = `${bold ? "700" : "500"} ${size}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = colour;
    // Nothing is cut off at the edge.
    const half = pen.measureText(text).width / 2;
    pen.fillText(text, Math.max(half, Math.min(this.width - half, x)), y);
  }

  /** The entity at a point of the canvas, agents before others; null if there is none. */
  entityAt(x, y) {
    const { episode } = this.moment;
    const near = range(episode.present.length)
      .filter((entity) => this.scene.markers[entity] && isPresent(episode, entity, this.step))
      .map((entity) => {
        const [ex, ey] = this.toCanvas(this.positionOf(entity));
        const reach = Math.max(1.3 * this.radiusOf(this.scene.markers[entity]), 14);
        return { entity, share: Math.hypot(ex - x, ey - y) / reach };
      })
      .filter(({ share }) => share <= 1)
      .sort((one, other) => isAgent(other.entity) - isAgent(one.entity) || one.share - other.share);
    return near.length ? near[0].entity : null;
  }
}
