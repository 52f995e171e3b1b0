import { useRef, type ClipboardEvent, type DragEvent } from "react";

import { IconButton, type ButtonProps } from "../ui";

/** Opens the browser's own choice of files. */
export function AttachButton({ onFiles, size = "normal" }: { onFiles: (files: File[]) => void; size?: NonNullable<ButtonProps["size"]> }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <IconButton icon="attach" label="Attach files" size={size} onClick={() => input.current?.click()} />
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files to attach"
        onChange={({ currentTarget }) => {
          onFiles([...(currentTarget.files ?? [])]);
          // Choosing the same file again must be a change again.
          currentTarget.value = "";
        }}
      />
    </>
  );
}

/** Files that are pasted or dropped; text goes where it always goes. */
export function takesFiles(onFiles: (files: File[]) => void) {
  const take = (event: ClipboardEvent | DragEvent, data: DataTransfer) => {
    const files = [...data.files];
    if (files.length === 0) return;
    event.preventDefault();
    onFiles(files);
  };
  return {
    onPaste: (event: ClipboardEvent) => take(event, event.clipboardData),
    onDrop: (event: DragEvent) => take(event, event.dataTransfer),
    // Without this the browser opens what is dropped, and the page is gone.
    onDragOver: (event: DragEvent) => event.dataTransfer.types.includes("Files") && event.preventDefault(),
  };
}
