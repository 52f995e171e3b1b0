/** How far to zoom and where to stand so that some places are in a frame, readable where they can be. */

import { HEIGHT, pointOf, WIDTH } from "./flow";
import type { Place } from "./places";

export interface View {
  x: number;
  y: number;
  zoom: number;
}

export interface Frame {
  width: number;
  height: number;
}

const MARGIN = 24;
/** Room for the buttons that stand over the canvas. */
const FOOT = 64;
export const LEAST_ZOOM = 0.1;
/** Below this, titles cannot be read. */
export const READABLE_ZOOM = 0.75;

/** All of them, as small as it takes down to `leastZoom`; of what does not fit then, the end. */
export function viewOf(places: Place[], { width, height }: Frame, leastZoom: number): View {
  const points = places.map(pointOf);
  const [left, right] = ends(points.map(({ x }) => x), WIDTH);
  const [top, bottom] = ends(points.map(({ y }) => y), HEIGHT);
  const fitting = Math.min((width - 2 * MARGIN) / (right - left), (height - MARGIN - FOOT) / (bottom - top), 1);
  const zoom = Math.max(leastZoom, fitting);
  const fits = (bottom - top) * zoom <= height - MARGIN - FOOT;
  return { x: MARGIN - left * zoom, y: fits ? MARGIN - top * zoom : height - FOOT - bottom * zoom, zoom };
}

function ends(values: number[], size: number): [number, number] {
  let [least, most] = [Infinity, -Infinity];
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return least === Infinity ? [0, size] : [least, most + size];
}

/** The same view, moved only as far as it takes to have a place on screen as a whole. */
export function viewWith(place: Place, view: View, { width, height }: Frame): View {
  const zoom = Math.max(view.zoom, LEAST_ZOOM_OF_ONE);
  const { x, y } = pointOf(place);
  // A zoom that changes would move everything; then the place is at least where it was.
  const [left, top] = [x * view.zoom + view.x, y * view.zoom + view.y];
  const move = (at: number, size: number, room: number) => Math.max(MARGIN, Math.min(at, room - MARGIN - size * zoom));
  return { x: move(left, WIDTH, width) - x * zoom, y: move(top, HEIGHT, height) - y * zoom, zoom };
}

/** A box that somebody goes to is never a mere dot. */
const LEAST_ZOOM_OF_ONE = 0.5;
