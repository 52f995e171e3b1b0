import { useMemo } from "react";

import { piecesOf } from "./verbatim";
import styles from "./Verbatim.module.css";

/** Text exactly as it is, with what would hide in it made visible; `line` keeps it to one line. */
export function Verbatim({ text, line = false }: { text: string; line?: boolean }) {
  const pieces = useMemo(() => piecesOf(text), [text]);
  return (
    <span className={line ? styles.line : styles.verbatim}>
      {pieces.map((piece, at) =>
        piece.hidden ? (
          <mark key={at} className={styles.mark} title="Invisible character">
            {piece.text}
          </mark>
        ) : (
          piece.text
        ),
      )}
    </span>
  );
}
