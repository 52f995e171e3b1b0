/** Lines of a diff, whether somebody sent it or it was worked out here. */

export interface DiffLine {
  /** `@` is a place between lines: where a piece begins, or how much was left out. */
  sign: "+" | "-" | " " | "@";
  text: string;
  before: number | null;
  after: number | null;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** A unified diff, line by line. A piece says how many lines it has; all else is about files. */
export function unifiedLines(text: string): DiffLine[] {
  const reader = new Hunks();
  return withoutLastBreak(text).map((line) => reader.line(line));
}

class Hunks {
  #before = 0;
  #after = 0;
  #lastBefore = -1;
  #lastAfter = -1;

  line(line: string): DiffLine {
    if (this.#before <= this.#lastBefore || this.#after <= this.#lastAfter) {
      const made = this.#inside(line);
      if (made !== null) return made;
    } else this.#begin(HUNK.exec(line));
    return place(line);
  }

  #begin(hunk: RegExpExecArray | null): void {
    if (hunk === null) return;
    this.#before = Number(hunk[1]);
    this.#after = Number(hunk[3]);
    this.#lastBefore = this.#before + Number(hunk[2] ?? 1) - 1;
    this.#lastAfter = this.#after + Number(hunk[4] ?? 1) - 1;
  }

  #inside(line: string): DiffLine | null {
    const sign = line === "" ? " " : line[0];
    if (sign !== "+" && sign !== "-" && sign !== " ") return null;
    const before = sign === "+" ? null : this.#before++;
    const after = sign === "-" ? null : this.#after++;
    return { sign, text: line.slice(1), before, after };
  }
}

export function place(text: string): DiffLine {
  return { sign: "@", text, before: null, after: null };
}

export function withoutLastBreak(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
