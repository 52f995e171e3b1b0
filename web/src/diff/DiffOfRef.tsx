import { DIFF_BYTES } from "../api/limits";
import { wordsOf } from "../api/refusal";
import { textIn, useContent } from "../state/contents";
import { Spinner } from "../ui";
import { DiffText } from "./DiffText";

/** A diff that is kept behind a ref, as it was kept. */
export function DiffOfRef({ diffRef, tall = false }: { diffRef: string; tall?: boolean }) {
  const content = useContent(diffRef, DIFF_BYTES);
  const text = content.data === undefined ? null : textIn(content.data);
  if (content.error) return <p role="alert">{wordsOf(content.error)}</p>;
  if (content.data === undefined) return <Spinner label="Loading diff" />;
  if (text === null || !content.data.whole) return <p>This diff is not text or is too large to show. You can download it.</p>;
  return <DiffText text={text} tall={tall} />;
}
