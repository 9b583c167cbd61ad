/** The alert rules and the dashboard use metrics that the services have, with labels that these metrics have. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { YAML } from 'bun'
import { CONTROL_METRICS } from '../../control/http/metrics.ts'
import { RUNTIME_METRICS } from '../../runtime/http/metrics.ts'

const DEPLOY = join(dirname(dirname(import.meta.dir)), 'deploy')
const METRICS = [...CONTROL_METRICS, ...RUNTIME_METRICS]

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: Readonly<Record<string, string>>
}

const { groups } = YAML.parse(readFileSync(join(DEPLOY, 'alerts.yml'), 'utf8')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)

const dashboard = JSON.parse(readFileSync(join(DEPLOY, 'grafana-dashboard.json'), 'utf8')) as {
  panels: { title: string; targets?: { expr: string }[] }[]
}
const queries = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const))

/** Names of our metrics in an expression, each with the labels that it is asked by. */
const usesIn = (expr: string) =>
  [...expr.matchAll(/\b((?:service|process)_\w+?)(_bucket|_sum|_count)?(?:\{([^}]*)\})?(?=[^\w])/g)].map(
    ([, name, suffix, filter = '']) => ({
      name: name!,
      isOfHistogram: suffix !== undefined,
      labels: [...filter.matchAll(/(\w+)\s*=~?/g)].map(([, label]) => label!),
    }),
  )

const uses = [...rules.map(({ alert, expr }) => [alert, expr] as const), ...queries]

test('there are rules and queries', () => {
  expect(rules.length).toBeGreaterThan(5)
  expect(queries.length).toBeGreaterThan(10)
})

describe.each(uses)('%s: %s', (_, expr) => {
  test('uses metrics and labels that exist', () => {
    for (const { name, isOfHistogram, labels } of usesIn(`${expr} `)) {
      const metric = METRICS.find((known) => known.name === name)
      expect([name, metric !== undefined]).toEqual([name, true])
      expect(metric?.type === 'histogram').toBe(isOfHistogram)
      const known = ['instance', 'job', ...Object.keys(metric?.labels ?? {})]
      expect(labels.filter((label) => !known.includes(label))).toEqual([])
    }
  })

  test('has as many closing as opening brackets', () => {
    for (const [open, close] of ['()', '[]', '{}'] as const) {
      expect(expr.split(open!).length).toBe(expr.split(close!).length)
    }
  })
})

test('every rule says in a sentence what is wrong', () => {
  expect(rules.filter(({ annotations }) => !annotations.summary).map(({ alert }) => alert)).toEqual([])
})

test('every metric is on the dashboard', () => {
  const shown = new Set(queries.flatMap(([, expr]) => usesIn(`${expr} `).map(({ name }) => name)))
  const derived = METRICS.filter(({ name }) => name.includes('_available_')).map(({ name }) => name)
  expect(METRICS.map(({ name }) => name).filter((name) => !shown.has(name) && !derived.includes(name))).toEqual([
    'service_runtime_task_duration_ms', // the same in seconds is shown
    'service_runtime_reserved_task_slots', // equals the running tasks
  ])
})
