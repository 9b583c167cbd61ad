/** `bun run docs`: writes the generated parts of the documents. tests/readme.test.ts fails if they are outdated. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { checkSettings } from '../control/commands/database.ts'
import { controlSettings, controlVariables } from '../control/config.ts'
import { MESSAGE_ORDER, type MessageOrder } from '../control/executors/runtime/message-order.ts'
import { CONTROL_METRICS } from '../control/http/metrics.ts'
import { TENANT_METRICS } from '../control/http/tenant-metrics.ts'
import { serveSettings, serveVariables } from '../runtime/config.ts'
import { RUNTIME_METRICS } from '../runtime/http/metrics.ts'
import { SubmitTaskRequest } from '../shared/contract/runtime-request.ts'
import { ScheduleFields } from '../shared/contract/schedules.ts'
import { GraphFields, TaskInput } from '../shared/contract/submission.ts'
import { describedRoutes } from '../shared/http/openapi/route.ts'
import { bothLogEvents } from '../shared/logs/events/both.ts'
import { controlLogEvents } from '../shared/logs/events/control.ts'
import { CAUSE, CONTEXT_FIELDS } from '../shared/logs/events/event.ts'
import { runtimeLogEvents } from '../shared/logs/events/runtime.ts'
import { describedControl, describedRuntime } from './described-apps.ts'
import { eventsList } from './events-list.ts'
import { fieldsList } from './fields-list.ts'
import { graphFileSchema } from './graph-schema.ts'
import { limitsLists } from './limits-page.ts'
import { markdownTable } from './markdown-table.ts'
import { logFieldsTable, logList, metricsList } from './operations-lists.ts'
import { parametersList, routesList } from './routes.ts'
import { replaceSection, sectionOf, settingsBeside, settingsList } from './settings-list.ts'

const ROOT = dirname(import.meta.dir)
const SETTINGS = join(ROOT, 'docs/settings.md')
const GRAPH_SCHEMA = join(ROOT, 'shared/contract/graph-schema.json')
const PROGRAMS = join(ROOT, 'docs/programs.md')
const OPERATIONS = join(ROOT, 'docs/operations.md')
const HTTP = join(ROOT, 'docs/http.md')
const SCHEDULES = join(ROOT, 'docs/schedules.md')
const RUNTIME = join(ROOT, 'docs/runtime.md')
const LIMITS = join(ROOT, 'docs/limits.md')
const DESIGN = join(ROOT, 'docs/design.md')
const README = join(ROOT, 'README.md')
const RESULTS = join(ROOT, 'bench/results')

/** docs/settings.md with the current tables. */
export function currentSettingsPage(): string {
  const control = settingsList(controlSettings, controlVariables)
  const runtime = settingsList(settingsBeside(serveSettings, controlSettings), serveVariables)
  const page = replaceSection(readFileSync(SETTINGS, 'utf8'), 'control settings', control)
  const both = replaceSection(page, 'runtime settings', runtime)
  const ofCheck = settingsList(settingsBeside(checkSettings, controlSettings))
  return replaceSection(both, 'database check settings', ofCheck)
}

/** docs/programs.md with the current example, which the tests run. */
export function currentProgramsPage(): string {
  const example = readFileSync(join(ROOT, 'examples/client/nightly.ts'), 'utf8')
  return replaceSection(readFileSync(PROGRAMS, 'utf8'), 'client example', `\`\`\`ts\n${example}\`\`\``)
}

/** The page with the current content of its sections. */
const pageWith = (path: string, sections: Readonly<Record<string, string>>): string =>
  Object.entries(sections).reduce(
    (page, [name, content]) => replaceSection(page, name, content),
    readFileSync(path, 'utf8'),
  )

/** docs/http.md with the current fields, routes, parameters and kinds of events. */
export function currentHttpPage(): string {
  const routes = describedRoutes(describedControl())
  return pageWith(HTTP, {
    'fields of a task': fieldsList(TaskInput, ['when']),
    'fields of a graph': fieldsList(GraphFields),
    'kinds of events': eventsList(),
    'control routes': routesList(routes),
    'control parameters': parametersList(routes),
  })
}

/** docs/schedules.md with the current fields. */
export const currentSchedulesPage = (): string =>
  pageWith(SCHEDULES, { 'fields of a schedule': fieldsList(ScheduleFields) })

/** docs/runtime.md with the current fields, routes and parameters. */
export function currentRuntimePage(): string {
  const routes = describedRoutes(describedRuntime())
  return pageWith(RUNTIME, {
    'fields of a runtime task': fieldsList(SubmitTaskRequest, ['sandbox.namespaces']),
    'runtime routes': routesList(routes),
    'runtime parameters': parametersList(routes),
  })
}

/** docs/limits.md with the current limits. */
export const currentLimitsPage = (): string => replaceSection(readFileSync(LIMITS, 'utf8'), 'limits', limitsLists())

/** shared/contract/graph-schema.json, which `taskmill schema` prints. */
export const currentGraphSchema = (): string => `${JSON.stringify(graphFileSchema(), null, 2)}\n`

/** docs/operations.md with the current metrics and log messages. */
export function currentOperationsPage(): string {
  const common = { ...CONTEXT_FIELDS, ...CAUSE }
  const names = new Set(Object.keys(common))
  return pageWith(OPERATIONS, {
    'control metrics': metricsList(CONTROL_METRICS),
    'tenant metrics': metricsList(TENANT_METRICS),
    'runtime metrics': metricsList(RUNTIME_METRICS, CONTROL_METRICS),
    'log fields': logFieldsTable(common),
    'log messages of both': logList(bothLogEvents, names),
    'control log messages': logList(controlLogEvents, names),
    'runtime log messages': logList(runtimeLogEvents, names),
  })
}

/** docs/design.md with the messages to runtime services that follow a commit. */
export function currentDesignPage(): string {
  const rows = Object.entries<MessageOrder>(MESSAGE_ORDER)
    .filter(([, { after }]) => after !== undefined)
    .map(([message, { after, commit, why }]) => [`\`${message}\``, `\`${after}\``, commit, why])
  const table = markdownTable(
    ['message', 'follows `kept(…)`', 'what that commit holds', 'what it would do before'],
    rows,
  )
  return replaceSection(readFileSync(DESIGN, 'utf8'), 'messages to runtime services', table)
}

/** README.md with what the newest report of the bench says in short; without a report as it is. */
export function currentReadme(): string {
  const readme = readFileSync(README, 'utf8')
  const reports = existsSync(RESULTS) ? readdirSync(RESULTS).filter((name) => /^\d{4}-\d\d-\d\d\.md$/.test(name)) : []
  const newest = reports.sort().at(-1)
  if (newest === undefined) return readme
  const quoted = sectionOf(readFileSync(join(RESULTS, newest), 'utf8'), 'quoted')
  const source = `From the [report of ${newest.slice(0, -3)}](bench/results/${newest}), which has all rows and the machine.`
  return replaceSection(readme, 'speed', `\n${source}\n\n${quoted}\n`)
}

if (import.meta.main) {
  writeFileSync(README, currentReadme())
  writeFileSync(SETTINGS, currentSettingsPage())
  writeFileSync(PROGRAMS, currentProgramsPage())
  writeFileSync(GRAPH_SCHEMA, currentGraphSchema())
  writeFileSync(OPERATIONS, currentOperationsPage())
  writeFileSync(HTTP, currentHttpPage())
  writeFileSync(SCHEDULES, currentSchedulesPage())
  writeFileSync(RUNTIME, currentRuntimePage())
  writeFileSync(DESIGN, currentDesignPage())
  writeFileSync(LIMITS, currentLimitsPage())
}
