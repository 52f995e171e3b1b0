import { useState } from "react";

import { PACES, type Pace, type TimeMachine } from "../../state/moments";
import { IconButton } from "../../ui";
import { turnFrom } from "./steps";
import styles from "./Transport.module.css";

/** Step and play, as on any recorder. */
export function Transport({ machine }: { machine: TimeMachine }) {
  const { facts, index, playing } = machine;
  const [pace, setPace] = useState<Pace>(playing ?? "4");
  const place = index ?? facts.rows.length;
  const none = facts.rows.length === 0;
  const choose = (next: Pace) => {
    setPace(next);
    if (playing !== null) machine.play(next);
  };
  return (
    <div className={styles.transport} role="group" aria-label="Playback">
      <IconButton icon="turn-back" label="Previous turn" size="small" disabled={none || place === 0} onClick={() => machine.goTo(turnFrom(facts.rows, place, -1))} />
      <IconButton icon="back" label="Previous fact" size="small" disabled={none || place === 0} onClick={() => machine.goTo(place - 1)} />
      {playing === null ? (
        <IconButton icon="play" label="Play" size="small" disabled={none} onClick={() => machine.play(pace)} />
      ) : (
        <IconButton icon="pause" label="Pause" size="small" onClick={machine.pause} />
      )}
      <IconButton icon="chevron" label="Next fact" size="small" disabled={machine.live} onClick={() => machine.goTo(place + 1)} />
      <IconButton icon="turn-on" label="Next turn" size="small" disabled={machine.live} onClick={() => machine.goTo(turnFrom(facts.rows, place, 1))} />
      <select className={styles.pace} aria-label="Speed" value={playing ?? pace} onChange={(event) => choose(event.target.value as Pace)}>
        {Object.entries(PACES).map(([id, { words }]) => (
          <option key={id} value={id}>
            {words}
          </option>
        ))}
      </select>
    </div>
  );
}
