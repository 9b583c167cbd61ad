/** The requests of the bench as bytes. Their ids are unique if their prefixes are. */

import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'

const encoder = new TextEncoder()

const TASKS = '/api/v1/tasks'

export const get = (path: string): Uint8Array => encoder.encode(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`)

export function post(path: string, content: object): Uint8Array {
  const body = encoder.encode(JSON.stringify(content))
  const head = encoder.encode(
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`,
  )
  return Buffer.concat([head, body])
}

/** A graph for control. */
export const postTasks = (tasks: readonly object[]): Uint8Array => post('/tasks', { tasks })

/** A task for the runtime service. */
export const postTask = (task: SubmitTaskRequest): Uint8Array => post(TASKS, task)

/** The status of a task of the runtime service; held until it has ended, for at most `waitMs`. */
export const getTask = (id: string, waitMs: number): Uint8Array => get(`${TASKS}/${id}?wait_ms=${waitMs}`)

/** The record of a task of control; held likewise. */
export const getRecord = (id: string, waitMs: number): Uint8Array => get(`/tasks/${id}?wait_ms=${waitMs}`)

export const killTask = (id: string): Uint8Array => post(`${TASKS}/${id}/kill`, {})

/** Tasks that do not depend on each other. */
export const wide = (prefix: string, count: number): object[] =>
  Array.from({ length: count }, (_, i) => ({ id: `${prefix}-${i}`, type: 'noop' }))

/** Tasks of which each depends on the one before it. */
export const chain = (prefix: string, count: number): object[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `${prefix}-${i}`,
    type: 'noop',
    ...(i > 0 && { depends_on: [`${prefix}-${i - 1}`] }),
  }))

/** Tasks in ten layers, each of which depends on all of the layer before it: 90,000 dependencies of 1,000 tasks. */
export function layers(prefix: string, count: number): object[] {
  const width = count / 10
  const layer = (start: number) => Array.from({ length: width }, (_, i) => `${prefix}-${start + i}`)
  return Array.from({ length: count }, (_, i) => {
    const start = Math.floor(i / width) * width
    return { id: `${prefix}-${i}`, type: 'noop', ...(start > 0 && { depends_on: layer(start - width) }) }
  })
}

/** Tasks in layers of 25, each of which depends on two of the layer before it. */
export const layered = (prefix: string, count: number): object[] =>
  Array.from({ length: count }, (_, i) => ({
    id: `${prefix}-${i}`,
    type: 'noop',
    ...(i >= LAYER && { depends_on: [`${prefix}-${i - LAYER}`, `${prefix}-${otherAbove(i)}`] }),
  }))

const LAYER = 25

/** The task of the layer above that is diagonally above task `i`. */
const otherAbove = (i: number): number => Math.floor(i / LAYER - 1) * LAYER + ((i + 1) % LAYER)

/** Ten tasks as an agent might send them: one first, eight that need it, one that needs the eight. */
export function tenTasks(prefix: string): object[] {
  const middle = Array.from({ length: 8 }, (_, i) => `${prefix}-${i + 1}`)
  return [
    { id: `${prefix}-0`, type: 'noop' },
    ...middle.map((id) => ({ id, type: 'noop', depends_on: [`${prefix}-0`] })),
    { id: `${prefix}-9`, type: 'noop', depends_on: middle },
  ]
}
