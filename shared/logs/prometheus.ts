/** Metrics as text for Prometheus (0.0.4) and OpenMetrics (1.0.0). Pure. */

interface MetricName {
  /** The name of a counter ends in `_total`. */
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** A sentence. */
  readonly help: string
}

/** A metric, declared once: the answer of /metrics and the table of `docs/operations.md` are made from it. */
export interface Metric<S> extends MetricName {
  /** Labels of its samples: name to values. */
  readonly labels?: Readonly<Record<string, string>>
  /** The present values. Undefined where there is nothing to measure. */
  readonly samples: (sources: S) => readonly Sample[] | undefined
}

export interface MetricFamily extends MetricName {
  readonly samples: readonly Sample[]
}

/** The present values of all metrics that can be measured. */
export const measured = <S>(metrics: readonly Metric<S>[], sources: S): MetricFamily[] =>
  metrics.flatMap(({ name, type, help, samples }) => {
    const values = samples(sources)
    return values === undefined ? [] : [{ name, type, help, samples: values }]
  })

export interface Sample {
  readonly labels?: Readonly<Record<string, string>>
  readonly value: number
  /** Suffix of the name, for samples of a histogram. */
  readonly suffix?: '_bucket' | '_sum' | '_count'
}

/**
 * The samples of a histogram. `counts` has one count for each bucket of the ascending `bounds`, and one for the values above
 * all of them.
 */
export function histogramSamples(
  bounds: readonly number[],
  counts: readonly number[],
  sum: number,
  labels?: Sample['labels'],
): Sample[] {
  let total = 0
  const ofAll = labels && { labels }
  const buckets = [...bounds.map(String), '+Inf'].map((le, i): Sample => {
    total += counts[i] ?? 0
    return { suffix: '_bucket', labels: { ...labels, le }, value: total }
  })
  return [...buckets, { suffix: '_sum', value: sum, ...ofAll }, { suffix: '_count', value: total, ...ofAll }]
}

export const TEXT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'
export const OPENMETRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

/** The families as text. With `openMetrics`, headers name counters without their suffix, and a mark ends the text. */
export function renderMetrics(families: readonly MetricFamily[], openMetrics: boolean): string {
  const lines = families.flatMap(({ name, type, help, samples }) => {
    const family = openMetrics && type === 'counter' ? name.replace(/_total$/, '') : name
    const head = [`# HELP ${family} ${escaped(help)}`, `# TYPE ${family} ${type}`]
    const lines = samples.map(({ labels, value, suffix = '' }) => `${name}${suffix}${renderLabels(labels)} ${value}`)
    return [...head, ...lines]
  })
  return [...lines, ...(openMetrics ? ['# EOF'] : []), ''].join('\n')
}

function renderLabels(labels: Readonly<Record<string, string>> = {}): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escaped = (text: string): string => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')

/** The media type of `offered` that an `Accept` header prefers, by default the first. */
export function preferredType(accept: string | null, offered: readonly string[]): string {
  if (accept === null || accept.trim() === '') return offered[0]!
  const ranges = accept.split(',').map((range) => {
    const [type = '', ...params] = range.split(';').map((part) => part.trim().toLowerCase())
    const quality = Number(params.find((param) => param.startsWith('q='))?.slice(2) ?? 1)
    return { type, quality: Number.isNaN(quality) ? 0 : quality }
  })
  const qualityOf = (type: string): number => {
    const matching = [type, `${type.split('/')[0]}/*`, '*/*'].map((name) => ranges.find((range) => range.type === name))
    return matching.find((range) => range !== undefined)?.quality ?? 0 // the most specific range counts
  }
  return offered.reduce((best, type) => (qualityOf(type) > qualityOf(best) ? type : best))
}
