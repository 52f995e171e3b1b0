import { Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";

import { followLists } from "../state/lists";
import { useHealth } from "../state/queries";
import { hurryAll } from "../state/thread-stores";
import { classes } from "../ui";
import { useAttention } from "./attention";
import { Help } from "./Help";
import { fetchParts } from "./parts";
import styles from "./Shell.module.css";
import { useShortcuts, type Shortcut } from "./shortcuts";
import { SEARCH_ID, Sidebar } from "./Sidebar";
import { TopBar } from "./TopBar";

/** The frame around every page of somebody who is signed in. */
export function Shell() {
  const [menuOpen, setMenuOpen] = useState(false);
  const [helpOpen, setHelpOpen] = useState(false);
  const address = useRouterState({ select: (state) => state.location.href });
  const shortcuts = useShellShortcuts(() => setMenuOpen(true), () => setHelpOpen(true));
  useShortcuts(shortcuts);
  useLiveLists();
  useAttention();
  useEffect(() => setMenuOpen(false), [address]);
  useEffect(fetchParts, []);
  return (
    <div className={classes(styles.shell, menuOpen && styles.open)} onKeyDown={(event) => event.key === "Escape" && setMenuOpen(false)}>
      <a className={styles.skip} href="#content">
        Skip to content
      </a>
      <aside className={styles.side} aria-label="Threads">
        <Sidebar />
      </aside>
      <button type="button" className={styles.veil} aria-label="Close the thread list" onClick={() => setMenuOpen(false)} />
      <div className={styles.main}>
        <TopBar onMenu={() => setMenuOpen(true)} onHelp={() => setHelpOpen(true)} />
        <ProjectNotice />
        <main id="content" className={styles.content} tabIndex={-1}>
          <Outlet />
        </main>
      </div>
      {helpOpen && <Help shortcuts={shortcuts} onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

/** A project's settings that this Edge ignores: whoever expects them should know, and what to do. */
function ProjectNotice() {
  const ignored = useHealth().data?.details?.untrustedProject ?? null;
  return ignored === null ? null : (
    <p className={styles.notice} role="status">
      {ignored}
    </p>
  );
}

/** Lists are followed while somebody is signed in; when the network is back, so is everything. */
function useLiveLists(): void {
  useEffect(() => {
    const lists = followLists();
    const hurry = () => {
      lists.hurry();
      hurryAll();
    };
    window.addEventListener("online", hurry);
    document.addEventListener("visibilitychange", hurry);
    return () => {
      lists.stop();
      window.removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
    };
  }, []);
}

function useShellShortcuts(openMenu: () => void, openHelp: () => void): Shortcut[] {
  const navigate = useNavigate();
  // The two callbacks only set state, so the first ones are as good as any.
  return useMemo(
    () => [
      { keys: "g h", does: "Go to the home page to start a thread", run: () => void navigate({ to: "/" }) },
      { keys: "g i", does: "Go to the inbox", run: () => void navigate({ to: "/inbox" }) },
      { keys: "/", does: "Search threads", run: () => focusSearch(openMenu) },
      { keys: "?", does: "Show keyboard shortcuts", run: openHelp },
    ],
    [navigate],
  );
}

function focusSearch(openMenu: () => void): void {
  openMenu();
  requestAnimationFrame(() => document.getElementById(SEARCH_ID)?.focus());
}
