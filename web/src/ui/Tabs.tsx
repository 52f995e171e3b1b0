import { useEffect, useRef, type KeyboardEvent } from "react";

import { Icon, type IconName } from "./Icon";
import styles from "./Tabs.module.css";

export interface Tab {
  id: string;
  title: string;
  icon?: IconName;
  count?: number;
}

export interface TabsProps {
  label: string;
  tabs: Tab[];
  chosen: string;
  onChoose: (id: string) => void;
  /** The id of the element that a tab shows. */
  panelId: string;
}

const STEPS: Record<string, number> = { ArrowLeft: -1, ArrowRight: 1 };

export function Tabs({ label, tabs, chosen, onChoose, panelId }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  // Where the row is wider than the page, the one that is chosen is the one to see.
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [chosen]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step === undefined) return;
    const at = (tabs.findIndex((tab) => tab.id === chosen) + step + tabs.length) % tabs.length;
    onChoose(tabs[at]?.id ?? chosen);
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[at]?.focus();
  };
  return (
    <div ref={list} role="tablist" aria-label={label} className={styles.tabs} onKeyDown={onKeyDown}>
      {tabs.map((tab) => (
        <button
          key={tab.id}
          type="button"
          role="tab"
          id={`${panelId}-${tab.id}`}
          className={styles.tab}
          aria-selected={tab.id === chosen}
          aria-controls={tab.id === chosen ? panelId : undefined}
          tabIndex={tab.id === chosen ? 0 : -1}
          onClick={() => onChoose(tab.id)}
        >
          {tab.icon && <Icon name={tab.icon} size={14} />}
          {tab.title}
          {tab.count ? <span className={styles.count}>{tab.count}</span> : null}
        </button>
      ))}
    </div>
  );
}
