/** Graphs whose ids are their own, at a real service. */
import { expect } from 'bun:test'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import type { Control } from './control.ts'

export async function submit(control: Control, tasks: object[], more: object = {}): Promise<string> {
  const response = await control.post({ scope: 'graph', tasks, ...more })
  expect([response.status, await response.clone().text()]).toEqual([202, expect.any(String)])
  return ((await response.json()) as SubmitResponse).graph_id
}

export async function ended(control: Control, graphId: string): Promise<GraphDetails> {
  for (;;) {
    const graph = (await (await control.fetch(`/graphs/${graphId}?wait_ms=20000`)).json()) as GraphDetails
    if (graph.state !== 'running') return graph
  }
}

export async function read(control: Control, graphId: string, id: string): Promise<TaskRecord> {
  const response = await control.fetch(`/graphs/${graphId}/tasks/${encodeURIComponent(id)}`)
  expect([id, response.status]).toEqual([id, 200])
  return (await response.json()) as TaskRecord
}

export const statusesOf = ({ tasks }: GraphDetails): Record<string, string> =>
  Object.fromEntries(tasks.map(({ id, status }) => [id, status]))
