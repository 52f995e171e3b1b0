/** Compares two texts beside the page, which stays quick however long they are. */

import { compared } from "./compare";

export interface Texts {
  before: string;
  after: string;
}

self.onmessage = ({ data }: MessageEvent<Texts>) => self.postMessage(compared(data.before, data.after));
