/**
 * Where each row stands on a grid: its depth is its column. A node that has a place keeps it while
 * others come, since a picture that moves under a reader cannot be read; new ones take free lines.
 * Everything is laid out anew only where a reader folds, filters or asks for it.
 */

import type { Row } from "./rows";

export interface Place {
  column: number;
  line: number;
}

export type Places = ReadonlyMap<string, Place>;

/** The shortest picture: a first child stands beside its parent, all else on a line of its own. */
export function tidyPlaces(rows: Row[]): Places {
  const places = new Map<string, Place>();
  let line = -1;
  for (const { item, depth, place } of rows) {
    if (depth === 0 || place > 1) line += 1;
    places.set(item.id, { column: depth, line });
  }
  return places;
}

/** The same places for what had one, and free lines for the rest. */
export function grownPlaces(rows: Row[], before: Places): Places {
  const grid = new Grid();
  for (const row of rows) {
    const known = before.get(row.item.id);
    if (known?.column === row.depth) grid.put(row, known);
  }
  for (const row of rows) {
    if (!grid.places.has(row.item.id)) grid.put(row, grid.freePlace(row));
  }
  return grid.places;
}

/** A line belongs to one branch: on a line of others, a node would look like a child of theirs. */
class Grid {
  readonly places = new Map<string, Place>();
  readonly #taken = new Set<number>();
  readonly #parents = new Set<string | null>();
  #end = 0;

  put({ item }: Row, place: Place): void {
    this.places.set(item.id, place);
    this.#taken.add(place.line);
    this.#parents.add(item.parentId);
    this.#end = Math.max(this.#end, place.line + 1);
  }

  freePlace({ item, depth }: Row): Place {
    const parent = this.places.get(item.parentId ?? "");
    if (parent === undefined) return { column: depth, line: this.#end };
    if (!this.#parents.has(item.parentId)) return { column: depth, line: parent.line };
    let line = parent.line + 1;
    while (this.#taken.has(line)) line += 1;
    return { column: depth, line };
  }
}

/** Whether laying everything out anew would change nothing. */
export function isTidy(rows: Row[], places: Places): boolean {
  const tidy = tidyPlaces(rows);
  return rows.every(({ item }) => places.get(item.id)?.line === tidy.get(item.id)?.line);
}
