/** `taskmill pause`, `resume` and `pauses`: nothing new starts in a graph, of a type of tasks, or at all; what runs goes on. */
import { UsageError } from '../../shared/contract/errors.ts'
import type { ListedPause } from '../../shared/contract/pauses.ts'
import type { ServiceClient } from '../../shared/http/client.ts'
import { text } from '../../shared/settings/flags.ts'
import { EXIT, success } from '../envelope.ts'
import { defineCommand } from './command.ts'

const type = text({ value: 'type', help: 'Tasks of this type, such as runtime or shell.' })

export const pause = defineCommand({
  summary: 'Start nothing new in a graph, of a type of tasks, or at all. What runs goes on.',
  usage: '[GRAPH_ID | --type runtime] [--why "..."]',
  settings: { type, why: text({ value: 'text', help: 'The reason, for whoever asks why nothing starts.' }) },
  maxArguments: 1,
  run: async ({ values: { type, why }, positionals: [graph], client }) =>
    changed(client, 'pause', graph, { ...(type !== '' && { type }), ...(why !== '' && { why }) }),
})

export const resume = defineCommand({
  summary: 'End a pause: of a graph, of a type of tasks, or of the service.',
  usage: '[GRAPH_ID | --type runtime]',
  settings: { type },
  maxArguments: 1,
  run: async ({ values: { type }, positionals: [graph], client }) =>
    changed(client, 'resume', graph, type === '' ? {} : { type }),
})

export const pauses = defineCommand({
  summary: 'List what is paused: types of tasks, and the service. For graphs: graphs --paused.',
  usage: '',
  settings: {},
  maxArguments: 0,
  async run({ client }) {
    const { body } = await client.list({ method: 'GET', path: '/pauses' })
    return { data: { pauses: body as readonly ListedPause[] }, exitCode: EXIT.success }
  },
})

async function changed(
  client: ServiceClient,
  verb: 'pause' | 'resume',
  graph: string | undefined,
  fields: { readonly type?: string; readonly why?: string },
) {
  if (graph === '') throw new UsageError(`${verb}: the graph id is empty; leave it out for the whole service`)
  if (graph !== undefined && fields.type !== undefined)
    throw new UsageError(`--type is for tasks of all graphs: ${verb} either a graph or a type`)
  const path = graph === undefined ? `/${verb}` : `/graphs/${encodeURIComponent(graph)}/${verb}`
  const body = new TextEncoder().encode(JSON.stringify(fields))
  return success(await client.call({ method: 'POST', path, body }))
}
