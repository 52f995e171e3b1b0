/** How every open stream stands, and the worst of them, which is what the page says of itself. */

import { create } from "zustand";

import type { ConnectionStatus } from "../api/connection";

const WORST_FIRST: ConnectionStatus[] = ["stale", "reconnecting", "repairing", "connecting", "live"];

const useConnections = create<{ streams: Record<string, ConnectionStatus> }>(() => ({ streams: {} }));

/** A stream says how it stands; null when it is no more. */
export function report(stream: string, status: ConnectionStatus | null): void {
  useConnections.setState(({ streams }) => {
    const { [stream]: _, ...others } = streams;
    return { streams: status === null ? others : { ...others, [stream]: status } };
  });
}

export function useWorstConnection(): ConnectionStatus {
  return useConnections(({ streams }) => {
    const open = Object.values(streams);
    return WORST_FIRST.find((status) => open.includes(status)) ?? "connecting";
  });
}
