// Colours and shapes. Whatever a colour says is said by a number or a shape too.

import { NOBODY, data } from "./data.js";

/** The colour of a subtask; when there are more subtasks than colours, numbers tell them apart. */
export function colourOf(subtask) {
  const subtaskColours = data.colours.subtasks;
  return subtask === NOBODY ? data.colours.noSubtask : subtaskColours[subtask % subtaskColours.length];
}

/** Black or white, whichever can be read on a colour. */
export function inkOn(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255);
  return 0.3 * r + 0.59 * g + 0.11 * b > 0.5 ? "#111111" : "#ffffff";
}

/** Dashes of lines in charts, for those who cannot tell the colours apart. */
export function dashOf(subtask) {
  return ["", "7 3", "2 3", "9 3 2 3", "5 2", "1 2", "12 3"][subtask % 7];
}

/** The corners of a shape around (0, 0), or null for a disc. North is down here, as in pictures. */
function corners(shape) {
  const around = (count, turn) =>
    Array.from({ length: count }, (_, i) => {
      const angle = turn + (2 * Math.PI * i) / count;
      return [Math.sin(angle), -Math.cos(angle)];
    });
  switch (shape) {
    case "square":
      return [[-0.95, -0.95], [0.95, -0.95], [0.95, 0.95], [-0.95, 0.95]];
    case "triangle":
      return around(3, 0).map(([x, y]) => [1.2 * x, 1.2 * y + 0.12]);
    case "diamond":
      return around(4, 0).map(([x, y]) => [1.15 * x, 1.15 * y]);
    case "hexagon":
      return around(6, 0);
    default:
      return null;
  }
}

/** Begin a path in the form of a shape. */
export function trace(pen, shape, x, y, radius) {
  const points = corners(shape);
  pen.beginPath();
  if (points) {
    points.forEach(([dx, dy], i) => pen[i ? "lineTo" : "moveTo"](x + radius * dx, y + radius * dy));
    pen.closePath();
  } else {
    pen.arc(x, y, radius, 0, 2 * Math.PI);
  }
}

/** The same shape as a small picture for texts. */
export function shapeMarkup(shape, colour) {
  const points = corners(shape);
  const form = points
    ? `<polygon points="${points.map(([x, y]) => `${10 + 7 * x},${10 + 7 * y}`).join(" ")}"`
    : '<circle cx="10" cy="10" r="7"';
  return `<svg class="shape" viewBox="0 0 20 20" aria-hidden="true">${form} fill="${colour}"/></svg>`;
}

/** A small coloured label with the number of a subtask. */
export function chip(subtask, text = "") {
  const colour = colourOf(subtask);
  const shown = subtask === NOBODY ? "–" : subtask;
  return `<span class="chip" style="background:${colour};color:${inkOn(colour)}">${text}${shown}</span>`;
}

/** A colour of the style sheet, so that canvases follow the theme. */
export function themed(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** Texts of a task or a path may hold anything; they are put between tags and into attributes. */
export function safe(text) {
  const element = document.createElement("span");
  element.textContent = text;
  return element.innerHTML.replaceAll('"', "&quot;");
}
