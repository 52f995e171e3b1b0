import { useReactFlow } from "@xyflow/react";

import { IconButton } from "../../ui";
import styles from "./Graph.module.css";

export interface CanvasToolsProps {
  isTidy: boolean;
  onTidy: () => void;
  onFit: () => void;
  onLatest: () => void;
}

export function CanvasTools({ isTidy, onTidy, onFit, onLatest }: CanvasToolsProps) {
  const flow = useReactFlow();
  return (
    <div className={styles.tools} role="toolbar" aria-label="Graph view">
      <IconButton size="small" icon="plus" label="Zoom in" onClick={() => void flow.zoomIn()} />
      <IconButton size="small" icon="minus" label="Zoom out" onClick={() => void flow.zoomOut()} />
      <IconButton size="small" icon="fit" label="Fit all" onClick={onFit} />
      <IconButton size="small" icon="down" label="Latest" onClick={onLatest} />
      <IconButton size="small" icon="graph" label="Reset layout" disabled={isTidy} onClick={onTidy} />
    </div>
  );
}
