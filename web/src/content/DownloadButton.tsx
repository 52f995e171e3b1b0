import { useState } from "react";

import { send } from "../api/client";
import { wordsOf } from "../api/refusal";
import { Button, toast } from "../ui";
import { saved, sizeWords, type Progress } from "./download";

/** What is to be saved: what a ref names, or a pack. */
export type Downloadable = { ref: string } | { packId: string };

export function DownloadButton({ what, name, words = "Download" }: { what: Downloadable; name: string; words?: string }) {
  const [progress, setProgress] = useState<Progress | null>(null);
  const start = () => {
    setProgress({ bytes: 0, total: null });
    ask(what)
      .then((answer) => saved(answer, name, setProgress))
      .catch((error: unknown) => toast(wordsOf(error)))
      .finally(() => setProgress(null));
  };
  return (
    <Button size="small" icon="down" busy={progress !== null} onClick={start}>
      {progress === null || progress.bytes === 0 ? words : progressWords(progress)}
    </Button>
  );
}

function ask(what: Downloadable): Promise<Response> {
  return "ref" in what ? send("readBlob", { path: { ref: what.ref } }) : send("readPack", { path: { evidenceId: what.packId } });
}

function progressWords({ bytes, total }: Progress): string {
  return total === null || total === 0 ? sizeWords(bytes) : `${Math.floor((bytes / total) * 100)} %`;
}
