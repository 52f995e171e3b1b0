import { useMemo } from "react";

import { DiffView } from "./DiffView";
import { unifiedLines } from "./lines";

/** A unified diff that is at hand. */
export function DiffText({ text, tall = false }: { text: string; tall?: boolean }) {
  const lines = useMemo(() => unifiedLines(text), [text]);
  return <DiffView lines={lines} label="Diff" tall={tall} />;
}
