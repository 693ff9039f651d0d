// Draws lines over two axes as an SVG image. Pure.
import type { Plot } from "./scenario.ts";

const WIDTH = 720;
const HEIGHT = 420;
const MARGIN = { left: 64, right: 150, top: 36, bottom: 48 };
const TICKS = 5;
/** Okabe and Ito's colours, which the colour-blind can tell apart. */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];

/** Both axes begin at 0. */
export function drawPlot(plot: Plot): string {
  const points = plot.series.flatMap((series) => series.points);
  const xMax = Math.max(Number.MIN_VALUE, ...points.map(({ x }) => x));
  const yMax = Math.max(Number.MIN_VALUE, ...points.map(({ y }) => y));
  const right = WIDTH - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const toX = (x: number): string => (MARGIN.left + (x / xMax) * (right - MARGIN.left)).toFixed(1);
  const toY = (y: number): string => (bottom - (y / yMax) * (bottom - MARGIN.top)).toFixed(1);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    text(MARGIN.left, 20, plot.title, "start"),
    text((MARGIN.left + right) / 2, HEIGHT - 10, plot.xTitle, "middle"),
    text(MARGIN.left - 8, MARGIN.top - 6, plot.yTitle, "end"),
    `<path d="M${MARGIN.left} ${MARGIN.top}V${bottom}H${right}" fill="none" stroke="black"/>`,
  ];
  for (let tick = 0; tick <= TICKS; tick++) {
    const x = (xMax * tick) / TICKS;
    const y = (yMax * tick) / TICKS;
    parts.push(text(Number(toX(x)), bottom + 18, label(x), "middle"));
    parts.push(text(MARGIN.left - 8, Number(toY(y)) + 4, label(y), "end"));
  }
  for (const [index, { name, points: line }] of plot.series.entries()) {
    const colour = COLOURS[index % COLOURS.length];
    const path = line.map(({ x, y }) => `${toX(x)},${toY(y)}`).join(" ");
    parts.push(`<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"/>`);
    for (const { x, y } of line) {
      parts.push(`<circle cx="${toX(x)}" cy="${toY(y)}" r="3" fill="${colour}"/>`);
    }
    const y = MARGIN.top + 20 * index;
    parts.push(`<rect x="${right + 14}" y="${y}" width="12" height="4" fill="${colour}"/>`);
    parts.push(text(right + 32, y + 6, name, "start"));
  }
  return `${parts.join("\n")}\n</svg>\n`;
}

function text(x: number, y: number, content: string, anchor: "start" | "middle" | "end"): string {
  return `<text x="${x}" y="${y}" text-anchor="${anchor}">${escapeXml(content)}</text>`;
}

function escapeXml(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function label(value: number): string {
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(2);
}
