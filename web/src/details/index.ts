export { nameOf, plainWords, taskName } from "./names";
export { NodeDetails } from "./NodeDetails";
export { Pairs, Refs } from "./Pairs";
export { SidePanel } from "./SidePanel";
export { Teammate } from "./Teammate";
