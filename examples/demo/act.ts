/**
 * One graph of the demo: fills in the placeholders, submits it with the client, and shows it until all tasks have
 * ended.
 */
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphProgress } from '../../shared/text/live-view/progress.ts'
import type { LiveView } from '../../shared/text/live-view/screen.ts'
import type { Client } from './client.ts'
import { tasksOf } from './control.ts'
import { type ExampleGraph, expectedOn } from './graph.ts'
import { graphProgress } from './progress.ts'
import type { ServiceProcess } from './service-process.ts'

/** Milliseconds between two looks at the tasks: often enough to see the short ones, seldom enough to cost nothing. */
const LOOK_MS = 50

export interface Stage {
  readonly control: ServiceProcess
  readonly runtime: ServiceProcess
  readonly client: Client
  readonly limitsMemory: boolean
  /** Where the graph is put for the client to submit. */
  readonly graphPath: (name: string) => string
  readonly newView: (title: string) => LiveView
  readonly signal: AbortSignal
}

export interface Act {
  readonly graph: ExampleGraph
  readonly records: readonly TaskRecord[]
  readonly progress: GraphProgress
}

/** `json` is the example `name`, complete. */
export async function play(name: string, json: string, stage: Stage): Promise<Act> {
  const { control, runtime, client, limitsMemory } = stage
  const isLeft = new AbortController()
  const signal = AbortSignal.any([stage.signal, isLeft.signal])
  const graph = expectedOn(JSON.parse(json) as ExampleGraph, limitsMemory)
  const path = stage.graphPath(name)
  await Bun.write(path, json)
  const { task_ids, graph_id } = await client.submit(path, signal)
  let isOver = false
  const waiting = client.wait(task_ids, signal).finally(() => {
    isOver = true
  })
  const view = stage.newView(
    ` taskmill  runs the ${task_ids.length} tasks of ${join('examples', name)} on ${control.url}`,
  )
  try {
    for (;;) {
      const isLast = isOver // read before looking: what is shown last is how it ended
      const records = await tasksOf(control, graph_id, signal)
      runtime.throwIfEnded()
      const progress = graphProgress(graph.tasks, records, Date.now())
      view.show(progress)
      if (isLast) {
        await waiting
        return { graph, records, progress }
      }
      await Promise.race([waiting, Bun.sleep(LOOK_MS)])
    }
  } finally {
    view.close()
    isLeft.abort()
    await waiting.catch(() => {}) // it is ended with the rest, or has been heard
  }
}
