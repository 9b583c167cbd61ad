/** Text for scrapers: every line of the two formats, and who gets which. */
import { expect, test } from 'bun:test'
import { type MetricFamily, preferredType, renderMetrics } from '../../../shared/logs/prometheus.ts'

const families: MetricFamily[] = [
  {
    name: 'service_things_total',
    type: 'counter',
    help: 'Things, by \\ kind\nof thing.',
    samples: [
      { labels: { kind: 'a "b"\n\\c' }, value: 3 },
      { labels: { kind: 'd', of: 'e' }, value: 0.5 },
    ],
  },
  { name: 'service_queue', type: 'gauge', help: 'Queued.', samples: [{ value: 7 }] },
]

test('text for Prometheus', () => {
  expect(renderMetrics(families, false)).toBe(
    [
      '# HELP service_things_total Things, by \\\\ kind\\nof thing.',
      '# TYPE service_things_total counter',
      'service_things_total{kind="a \\"b\\"\\n\\\\c"} 3',
      'service_things_total{kind="d",of="e"} 0.5',
      '# HELP service_queue Queued.',
      '# TYPE service_queue gauge',
      'service_queue 7',
      '',
    ].join('\n'),
  )
})

test('OpenMetrics names a counter without its suffix and ends with a mark', () => {
  const text = renderMetrics(families, true)
  expect(text).toContain('# TYPE service_things counter\nservice_things_total{')
  expect(text).toEndWith('# EOF\n')
})

const OFFERED = ['application/json', 'text/plain', 'application/openmetrics-text']

test.each([
  [null, 'application/json'],
  ['', 'application/json'],
  ['*/*', 'application/json'],
  ['application/json', 'application/json'],
  ['text/html,application/xhtml+xml,*/*;q=0.8', 'application/json'],
  ['text/plain', 'text/plain'],
  ['text/*', 'text/plain'],
  ['text/plain;version=0.0.4', 'text/plain'],
  ['application/json, text/plain', 'application/json'],
  ['application/json;q=0.5, text/plain;q=0.9', 'text/plain'],
  ['text/plain;q=0.5, application/json', 'application/json'],
  [
    'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1',
    'application/openmetrics-text',
  ],
  ['application/openmetrics-text; version=0.0.1; q=0.75, text/plain; q=0.8', 'text/plain'],
  ['image/png', 'application/json'],
  ['text/plain;q=nonsense', 'application/json'],
])('Accept: %s gets %s', (accept, type) => {
  expect(preferredType(accept, OFFERED)).toBe(type)
})
