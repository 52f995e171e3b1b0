/** Small drawings on a grid of 16, drawn with the colour of the text around them. */

const DRAWINGS = {
  alert: "M8 2.5 14 13H2L8 2.5ZM8 6.5v3M8 11.2v.3",
  archive: "M2.5 3h11v3h-11zM3.5 6v7h9V6M6.5 8.5h3",
  artifact: "M4 2h5l3 3v9H4V2ZM9 2v3h3",
  attach: "M12.5 7.500 8 12a3 3 0 0 1-4.300-4.300L8.500 3a2 2 0 0 1 2.900 2.900L6.700 10.500a1 1 0 0 1-1.400-1.400L9.500 5",
  back: "M10 3 5 8l5 5",
  bell: "M4 11.500h8l-1-1.500V7a3 3 0 0 0-6 0v3l-1 1.500ZM7 13.500h2",
  "bell-off": "M4 11.500h8l-1-1.500V7a3 3 0 0 0-6 0v3l-1 1.500ZM7 13.500h2M3 3l10 10",
  branch: "M5 3v10M5 9c4 0 6-1 6-4M11 3v2M3.8 13h2.4",
  check: "m3 8.5 3.2 3L13 4.5",
  chevron: "m6 4 4 4-4 4",
  circle: "M8 3a5 5 0 1 1 0 10A5 5 0 0 1 8 3Z",
  clock: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM8 5v3l2 1.5",
  close: "m4 4 8 8M12 4l-8 8",
  copy: "M6 6h7v7H6zM3 10V3h7",
  diagnostics: "M2 9h3l1.5-5 3 8L11 9h3",
  down: "M8 3v9M4 8.5 8 12.5l4-4",
  evidence: "M8 2 13 4v4c0 3-2 5-5 6-3-1-5-3-5-6V4l5-2ZM5.8 8l1.6 1.6L10.4 6.5",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  graph: "M2.5 6.5h3v3h-3zM10.5 2.5h3v3h-3zM10.5 10.5h3v3h-3zM5.5 8H8V4h2.5M8 8v4h2.5",
  home: "M2.5 7.5 8 3l5.5 4.5M4 6.5V13h8V6.5",
  inbox: "M2.5 9 4.5 3h7l2 6v4h-11V9ZM2.5 9h3.2l.8 1.5h3l.8-1.5h3.2",
  info: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM8 7.2v4M8 4.8v.3",
  key: "M10 3a3 3 0 1 1-2.4 4.8L3 12.4V13h2l3.5-3.4M11 5.4v.2",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  message: "M2.5 3h11v8H7l-3 2.5V11H2.5V3Z",
  minus: "M3 8h10",
  monitor: "M2.5 3h11v8h-11zM6 13.5h4",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5Z",
  more: "M3.5 8h.2M8 8h.2M12.4 8h.2",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  plan: "M6.5 4h7M6.5 8h7M6.5 12h7M2.5 4l.8.8L4.8 3M2.5 8l.8.8L4.8 7M2.8 12h.4",
  play: "M5 3v10l8-5-8-5Z",
  plus: "M8 3v10M3 8h10",
  queue: "M2.5 4h11M2.5 8h7M2.5 12h4M11.5 9v4M9.5 11h4",
  retry: "M13 3v3.5H9.5M12.6 6.3A5 5 0 1 0 13 9",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.3 10.3 13.5 13.5",
  send: "M8 13V3M4 7l4-4 4 4",
  signout: "M6 2.5H3v11h3M7 8h6.5M11 5.5 13.5 8 11 10.5",
  skip: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM4.2 11.8l7.6-7.6",
  steer: "M3 13c0-5 3-7 9-7M9 3l3.5 3L9 9",
  stop: "M4 4h8v8H4z",
  sun: "M8 5.5a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5ZM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  team: "M5.5 3a2 2 0 1 1 0 4 2 2 0 0 1 0-4ZM2 13c0-2.5 1.5-4 3.5-4S9 10.5 9 13M10.5 4.2a1.8 1.8 0 0 1 0 3.4M11 9.2c1.8.2 3 1.6 3 3.8",
  thought: "M8 2.5c3.3 0 5.5 1.7 5.5 4.2S11.3 11 8 11c-.5 0-1 0-1.4-.1L4 12.5l.3-2.3C3.2 9.400 2.500 8.200 2.500 6.700 2.500 4.200 4.700 2.500 8 2.500Z",
  timeline: "M4 2.5v11M4 4.500h2M8 4.500h5M4 8h2M8 8h3M4 11.500h2M8 11.500h5",
  tool: "M10.500 2.500a3 3 0 0 0-3 4L2.500 11.500l2 2 5-5a3 3 0 0 0 4-3.800L11.300 6.900 9.300 6.700 9.100 4.700l2.200-2a3 3 0 0 0-.8-.2Z",
  "turn-back": "M3.5 3v10M12 3 7 8l5 5",
  "turn-on": "M12.500 3v10M4 3l5 5-5 5",
  unknown: "M6 6a2 2 0 1 1 2.800 1.800c-.6.300-.8.700-.8 1.500M8 11.600v.3",
} as const;

export type IconName = keyof typeof DRAWINGS;

export interface IconProps {
  name: IconName;
  size?: number;
  /** Said to those who do not see it; without one the words beside it are enough. */
  label?: string;
  className?: string | undefined;
}

export function Icon({ name, size = 16, label, className }: IconProps) {
  return (
    <svg
      className={className}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      strokeLinejoin="round"
      focusable="false"
      {...(label === undefined ? { "aria-hidden": true } : { role: "img", "aria-label": label })}
    >
      <path d={DRAWINGS[name]} />
    </svg>
  );
}
