export { axisOf, clamp, densityOf, showing, zoomed, type Axis, type Density, type Range, type Scale } from "./axis";
export type { FactLog } from "./fact-log";
export { useFacts, type Facts } from "./logs";
export { PACES, type Pace } from "./playing";
export { type FactRow, type Mark } from "./rows";
export { TimeMachineContext, useMachine, useTimeMachine, type TimeMachine } from "./useTimeMachine";
