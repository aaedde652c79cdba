"use strict";
// Numbers as the rest of leakscope writes them, colours as the style sheet has them, and elements
// that hold text and never markup.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function size(bytes) {
  let power = 0;
  let value = Math.abs(bytes);
  while (power < UNITS.length - 1 && value >= 1023.5) {
    value /= 1024;
    power += 1;
  }
  const digits = Number.isInteger(value) || value >= 99.95 ? 0 : 1;
  return (bytes < 0 ? "-" : "") + value.toFixed(digits) + " " + UNITS[power];
}

function count(number) {
  const rounded = Math.abs(number) < 1000 ? Math.round(number * 10) / 10 : Math.round(number);
  return rounded.toLocaleString("en-US");
}

const probe = document.createElement("i");
probe.hidden = true;
document.body.append(probe);

// A canvas knows no variables; an element does, and says what it made of them. Forgotten when the
// theme changes.
const colours = new Map();

function colour(name) {
  return resolved("var(--" + name + ")");
}

function faded(name, share) {
  return resolved("color-mix(in srgb, var(--" + name + ") " + share * 100 + "%, var(--card))");
}

function resolved(words) {
  if (!colours.has(words)) {
    probe.style.color = words;
    colours.set(words, getComputedStyle(probe).color);
  }
  return colours.get(words);
}

function element(kind, text, className) {
  const made = document.createElement(kind);
  if (text) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

// Columns travel as differences to the last value that was there.
function decoded(column, unit) {
  let last = 0;
  return column.map((difference) => (difference === null ? null : (last += difference) / unit));
}

function wait(task, milliseconds) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(task, milliseconds);
  };
}
