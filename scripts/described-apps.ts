/** The apps of both services, for their descriptions alone: routes are added and never called, so they get no parts. */
import { type ControlAppOptions, controlApp } from '../control/http/app.ts'
import { type RuntimeAppOptions, runtimeApp } from '../runtime/http/app.ts'
import { silentLog } from '../shared/logs/log.ts'

const log = silentLog()
const guard = () => {}

/** `hasDatabase` adds the routes with which replicas ask each other. */
export const describedControl = ({ hasDatabase = false } = {}) =>
  controlApp({
    parts: { log, keeper: { others: {}, ...(hasDatabase && { replica: {} }) } },
    guard,
    startedAt: 0,
    counters: {},
    streamLimits: {},
  } as unknown as ControlAppOptions)

export const describedRuntime = () => runtimeApp({ log, guard } as unknown as RuntimeAppOptions)
