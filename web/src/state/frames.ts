import { HIDDEN_FRAME_MS } from "../api/limits";

/** Before the next picture; hidden pages draw none, and go by a timer instead. */
export function nextFrame(what: () => void): void {
  if (document.visibilityState === "hidden") setTimeout(what, HIDDEN_FRAME_MS);
  else {
    // A page that is hidden between asking and drawing would wait until it is seen again.
    let done = false;
    const once = () => {
      if (!done) what();
      done = true;
    };
    requestAnimationFrame(once);
    setTimeout(once, HIDDEN_FRAME_MS);
  }
}
