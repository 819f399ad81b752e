// Puts the page together: one state, and whatever has to follow when it changes.

import { agentsOf, number, data } from "./data.js";
import { safe } from "./look.js";
import { MapView } from "./map.js";
import { Timeline } from "./timeline.js";
import { Charts } from "./charts.js";
import { describe } from "./inspector.js";

const state = {
  episode: 0,
  /** In steps; between whole ones while playing. */
  time: 0,
  playing: false,
  /** Steps a second. */
  speed: 4,
  /** `{ side, entity }`, `{ side, decision }` or null. */
  selected: null,
  /** Whether only what the selected agent sees is shown. */
  sight: false,
  /** The candidate allocation that is pointed at. */
  preview: null,
  /** What the inspector says now. */
  described: "",
};

const element = (id) => document.getElementById(id);
const views = data.sides.map(makeSide);
const charts = new Charts(element("charts"));

// ---- set-up

function makeSide(side, index) {
  const root = document.createElement("section");
  root.className = "card side";
  const several = data.sides.length > 1 ? `${index + 1}: ` : "";
  const by = side.allocator ? ` under ${side.allocator}` : "";
  root.innerHTML =
    `<h2><span class="label" title="${safe(side.label)}">${several}${safe(side.label)}</span> ` +
    `<small>${safe(side.method + by)}</small> <span class="result"></span></h2>` +
    '<p class="note nomap">This task does not say what it looks like: there is no map.</p>' +
    '<canvas role="img"></canvas><div class="timeline"></div>' +
    (side.note ? `<p class="note">${safe(side.note)}</p>` : "");
  element("sides").append(root);
  const choose = (what) => chooseFrom(index, what);
  const canvas = root.querySelector("canvas");
  const view = {
    side,
    root,
    canvas,
    map: new MapView(canvas),
    timeline: new Timeline(root.querySelector(".timeline"), choose),
  };
  canvas.addEventListener("click", (event) => {
    const entity = view.map.entityAt(event.offsetX, event.offsetY);
    choose(entity === null ? {} : { entity });
  });
  return view;
}

const episodeOf = (index) => data.sides[index].episodes[state.episode];
const lastStep = () => Math.max(...data.sides.map((_, index) => episodeOf(index).length));

function setUp() {
  element("title").innerHTML = `${safe(data.task)} <small>seed ${data.seed}</small>`;
  document.body.classList.toggle("several", data.sides.length > 1);
  element("tabs").innerHTML = data.sides[0].episodes
    .map((_, i) => `<button type="button" role="tab" data-episode="${i}">Episode ${i}</button>`)
    .join("");
  useTheme(prefersDark.matches);
}

/** Lay an episode out anew: a new episode, a new size, or a new theme. */
function layOut() {
  const steps = lastStep();
  views.forEach(({ canvas, timeline, root, side }, index) => {
    const episode = episodeOf(index);
    canvas.hidden = !episode.scene;
    root.querySelector(".nomap").hidden = Boolean(episode.scene);
    if (episode.scene) canvas.style.aspectRatio = `${episode.scene.size[0]} / ${episode.scene.size[1]}`;
    root.style.setProperty("--rows", agentsOf(episode).length);
    const ending = episode.success ? "✓ solved" : "✗ not solved";
    root.querySelector(".result").textContent = `${ending}, ${episode.length} steps, return ${number(episode.total, 1)}`;
    canvas.setAttribute("aria-label", `Map of ${data.task}, ${side.label}`);
    timeline.show(episode, steps);
  });
  charts.show(data.sides.map((_, index) => episodeOf(index)), steps);
  element("scrub").max = steps;
  update();
}

// ---- rendering

function update() {
  updateMoment();
  updateInspector();
}

/** What changes with every frame. */
function updateMoment() {
  const { time, selected, preview, playing } = state;
  views.forEach(({ map, timeline }, index) => {
    const chosen = selected?.side === index ? selected : null;
    const episode = episodeOf(index);
    const sight = state.sight && chosen?.entity < data.agents;
    const shown = preview && chosen?.decision !== undefined ? preview : null;
    if (episode.scene) map.draw({ episode, time, selected: chosen, sight, preview: shown });
    timeline.mark(time, chosen);
  });
  charts.mark(time);
  element("scrub").value = Math.floor(time);
  element("clock").textContent = `${Math.floor(time)} / ${lastStep()}`;
  element("play").textContent = playing ? "❚❚" : "▶";
  element("play").setAttribute("aria-label", playing ? "Pause" : "Play");
  for (const tab of element("tabs").children) {
    const chosen = Number(tab.dataset.episode) === state.episode;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
  }
}

/** Written anew only when it says something else, so that what is pointed at stays. */
function updateInspector() {
  const { time, selected, sight } = state;
  const side = selected?.side ?? 0;
  const text = describe({ side: data.sides[side], episode: episodeOf(side), time, selected, sight });
  if (text === state.described) return;
  state.described = text;
  const hadFocus = document.activeElement?.id;
  // What changes several times a second is not read aloud.
  element("inspector").setAttribute("aria-live", state.playing ? "off" : "polite");
  element("inspector").innerHTML = text;
  if (hadFocus === "sight") element("sight")?.focus();
}

// ---- actions

function showEpisode(episode) {
  Object.assign(state, { episode, time: 0, selected: null, preview: null, playing: false });
  layOut();
}

function seek(time) {
  state.time = Math.max(0, Math.min(lastStep(), time));
  update();
}

/** A whole step on or back, from wherever playing has stopped. */
function stepBy(steps) {
  state.playing = false;
  seek(Math.floor(state.time) + steps);
}

function chooseFrom(side, { entity, decision, step }) {
  if (step !== undefined) {
    seek(Math.round(step));
    return;
  }
  state.preview = null;
  if (decision !== undefined) {
    state.playing = false;
    state.time = decision;
    state.selected = { side, decision };
  } else {
    state.selected = entity === undefined ? null : { side, entity };
  }
  update();
  // On a narrow page the details lie below the screen.
  if (state.selected && narrow.matches) element("inspector").scrollIntoView({ block: "nearest", behavior: "smooth" });
}

/** To the next decision, or the one before, of the side that is looked at. */
function jump(direction) {
  const side = state.selected?.side ?? 0;
  const steps = episodeOf(side).decisions.map(({ step }) => step);
  const now = Math.floor(state.time);
  const atOne = state.selected?.decision === now;
  const found =
    direction > 0
      ? steps.find((step) => step > now || (step === now && !atOne))
      : steps.findLast((step) => step < now || (step === now && !atOne));
  if (found !== undefined) chooseFrom(side, { decision: found });
}

function togglePlay() {
  state.playing = !state.playing;
  if (state.playing && state.time >= lastStep()) state.time = 0;
  update();
  cancelAnimationFrame(frame);
  if (state.playing) frame = requestAnimationFrame((now) => play(now, now));
}

/** The frame that is asked for; never two, or playing would go twice as fast. */
let frame = 0;

function play(before, now) {
  if (!state.playing) return;
  const step = Math.floor(state.time);
  state.time = Math.min(lastStep(), state.time + ((now - before) / 1000) * state.speed);
  if (state.time >= lastStep()) state.playing = false;
  updateMoment();
  if (Math.floor(state.time) !== step) updateInspector();
  frame = requestAnimationFrame((later) => play(now, later));
}

function toggleSight() {
  state.sight = !state.sight;
  update();
}

// ---- event handlers

element("play").addEventListener("click", togglePlay);
element("back").addEventListener("click", () => stepBy(-1));
element("on").addEventListener("click", () => stepBy(1));
element("before").addEventListener("click", () => jump(-1));
element("next").addEventListener("click", () => jump(1));
element("scrub").addEventListener("input", (event) => {
  state.playing = false;
  seek(Number(event.target.value));
});
element("speed").addEventListener("change", (event) => {
  state.speed = Number(event.target.value);
  event.target.blur(); // arrows move in time again
});

element("tabs").addEventListener("click", (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) showEpisode(Number(tab.dataset.episode));
});
element("tabs").addEventListener("keydown", (event) => {
  const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!direction) return;
  event.stopPropagation();
  const count = element("tabs").children.length;
  showEpisode((state.episode + direction + count) % count);
  element("tabs").children[state.episode].focus();
});

element("inspector").addEventListener("change", (event) => event.target.id === "sight" && toggleSight());
for (const [begins, kind] of [[true, "pointerover"], [false, "pointerout"], [true, "focusin"], [false, "focusout"]]) {
  element("inspector").addEventListener(kind, (event) => {
    const option = event.target.closest("[data-option]");
    if (!option) return;
    state.preview = begins ? option.dataset.option.split(",").map(Number) : null;
    updateMoment();
  });
}

// What was clicked with a pointer gives the focus up, so that keys mean what they mean everywhere on the page. Who
// presses buttons by keyboard (detail is 0) keeps it.
document.addEventListener("click", (event) => {
  if (event.detail) event.target.closest("button, summary, input[type=checkbox]")?.blur();
});

const KEYS = {
  " ": togglePlay,
  ArrowLeft: (event) => stepBy(event.shiftKey ? -10 : -1),
  ArrowRight: (event) => stepBy(event.shiftKey ? 10 : 1),
  Home: () => stepBy(-Infinity),
  End: () => stepBy(Infinity),
  "[": () => jump(-1),
  "]": () => jump(1),
  s: toggleSight,
  Escape: () => chooseFrom(0, {}),
};

document.addEventListener("keydown", (event) => {
  const { target, key } = event;
  const ownKeys = target.matches("select, summary") || (key === " " && target.matches("button, input[type=checkbox]"));
  if (ownKeys || event.ctrlKey || event.metaKey || event.altKey || !KEYS[key]) return;
  event.preventDefault();
  KEYS[key](event);
});

// ---- colours and sizes

const narrow = matchMedia("(max-width: 700px)");
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;

function useTheme(dark) {
  root.dataset.theme = dark ? "dark" : "light";
  layOut();
}

element("theme").addEventListener("click", () => useTheme(root.dataset.theme !== "dark"));
prefersDark.addEventListener("change", () => useTheme(prefersDark.matches));

let width = 0;
new ResizeObserver(() => {
  if (document.body.clientWidth === width) return;
  width = document.body.clientWidth;
  layOut();
}).observe(document.body);

setUp();
