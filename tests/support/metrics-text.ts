/** A strict parser of the Prometheus text format 0.0.4. Anything unknown is an error. */
export interface Metric {
  readonly type: string
  readonly help: boolean
  readonly samples: Sample[]
}

export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const NAME = '[a-zA-Z_:][a-zA-Z0-9_:]*'
const LABEL = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"'
const SAMPLE = new RegExp(`^(${NAME})(?:\\{(${LABEL}(?:,${LABEL})*)?,?\\})? ([^ ]+)$`)
const SUFFIXES = ['_bucket', '_sum', '_count']

/** The metrics by name. Throws where the text is not as Prometheus reads it, or a sample stands under no `# TYPE`. */
export function readMetrics(text: string): Map<string, Metric> {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line has no end')
  const metrics = new Map<string, Metric>()
  const helped = new Set<string>()
  const seen = new Set<string>()
  let current: string | undefined
  for (const line of text.split('\n').slice(0, -1)) {
    const [, word, subject, rest] = /^# (HELP|TYPE) ([^ ]+)(?: (.*))?$/.exec(line) ?? []
    if (word === 'HELP') {
      if (helped.has(subject!)) throw new Error(`two HELP lines for ${subject}`)
      helped.add(subject!)
    } else if (word === 'TYPE') {
      if (metrics.has(subject!)) throw new Error(`two TYPE lines for ${subject}`)
      if (!/^(counter|gauge|histogram|summary|untyped)$/.test(rest ?? '')) throw new Error(`no type: ${line}`)
      metrics.set(subject!, { type: rest!, help: helped.has(subject!), samples: [] })
      current = subject!
    } else if (line !== '' && !line.startsWith('#')) {
      const sample = readSample(line)
      const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).toSorted())}`
      if (seen.has(key)) throw new Error(`twice: ${line}`)
      seen.add(key)
      const metric = current === undefined ? undefined : metrics.get(current)
      if (metric === undefined || !belongs(sample.name, current!, metric.type)) throw new Error(`a stray line: ${line}`)
      metric.samples.push(sample)
    }
  }
  return metrics
}

function readSample(line: string): Sample {
  const [, name, labels, text] = SAMPLE.exec(line) ?? []
  const value = text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text)
  if (name === undefined || (Number.isNaN(value) && text !== 'NaN')) throw new Error(`no sample: ${line}`)
  const pairs = [...(labels ?? '').matchAll(new RegExp(LABEL, 'g'))].map(([pair]) => {
    const at = pair.indexOf('=')
    return [pair.slice(0, at), JSON.parse(pair.slice(at + 1)) as string] as const
  })
  if (new Set(pairs.map(([label]) => label)).size !== pairs.length) throw new Error(`a label twice: ${line}`)
  return { name, labels: Object.fromEntries(pairs), value }
}

const belongs = (name: string, metric: string, type: string): boolean =>
  name === metric || (['histogram', 'summary'].includes(type) && SUFFIXES.some((suffix) => name === metric + suffix))

/** The value of the one sample with this name and these labels; undefined where there is none. */
export function sampleValue(
  metrics: ReadonlyMap<string, Metric>,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  const wanted = JSON.stringify(Object.entries(labels).toSorted())
  const all = [...metrics.values()].flatMap(({ samples }) => samples)
  return all.find(
    (sample) => sample.name === name && JSON.stringify(Object.entries(sample.labels).toSorted()) === wanted,
  )?.value
}
