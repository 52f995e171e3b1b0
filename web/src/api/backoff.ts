import { FIRST_WAIT_MS, LONGEST_WAIT_MS } from "./limits";

/**
 * The wait before try number `failures`, doubling up to a bound. Chance takes up to half of it
 * away, so that pages which lost the same Edge do not all come back at once.
 */
export function waitBefore(failures: number, chance: () => number = Math.random): number {
  const whole = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures, 16));
  return whole * (1 - chance() / 2);
}
