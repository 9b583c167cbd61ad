/** The load generator: a process that runs one job after the other and answers its parent. */
import { closeStreams, events, openStreams, toldStreams } from './load/events.ts'
import { graph } from './load/graph.ts'
import type { JobAnswer, JobMessage, JobName, Jobs } from './load/jobs.ts'
import { logs } from './load/logs.ts'
import { startProbe, stopProbe } from './load/probe.ts'
import { getPath, one, run, submit } from './load/rate.ts'
import { through } from './load/through.ts'

const work: { readonly [N in JobName]: (input: Jobs[N]['input']) => Promise<Jobs[N]['output']> } = {
  submit,
  get: getPath,
  run,
  one,
  graph,
  through,
  events,
  logs,
  'streams-open': openStreams,
  'streams-told': toldStreams,
  'streams-close': closeStreams,
  'probe-start': startProbe,
  'probe-stop': stopProbe,
}

process.on('message', async ({ name, input }: JobMessage) => {
  let answer: JobAnswer
  try {
    answer = { output: await (work[name] as (input: unknown) => Promise<unknown>)(input) }
  } catch (error) {
    answer = { error: `${name}: ${error instanceof Error ? error.message : error}` }
  }
  process.send!(answer)
})

process.on('disconnect', () => process.exit()) // the bench is gone
