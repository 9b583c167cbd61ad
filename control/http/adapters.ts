/** /adapters: describes, translates and executes actions of agents. */
import type { AnyElysia } from 'elysia'
import {
  ActionResponse,
  AdapterCapabilities,
  AdapterTools,
  AgentActionRequest,
} from '../../shared/contract/adapter-v1.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { traceOf } from '../../shared/http/service.ts'
import { actOnce, translateAction } from '../operations/act.ts'
import { describeAdapter, describeTools } from '../operations/describe.ts'
import type { PartsFor } from '../operations/tenant-view.ts'

const section = 'Actions of agents'

const EXAMPLE = { adapter: 'codex', action_id: 'list', action: { kind: 'os.shell', input: { command: 'ls' } } }

const action = { section, body: AgentActionRequest, example: EXAMPLE }

export function addAdapterRoutes(app: AnyElysia, partsFor: PartsFor): AnyElysia {
  return app
    .get(
      '/adapters/capabilities',
      describeAdapter,
      described({
        section,
        right: 'read',
        summary: 'Read what the adapter can do',
        answers: { 200: json(AdapterCapabilities, 'Kinds of actions, and notes.') },
      }),
    )
    .get(
      '/adapters/tools',
      ({ request }) => describeTools(partsFor(request)),
      described({
        section,
        right: 'read',
        summary: 'List the kinds of actions as tools',
        description: 'A function tool for each kind of action and each skill, with the JSON Schema of its input.',
        answers: { 200: json(AdapterTools, 'The tools.') },
      }),
    )
    .post(
      '/adapters/translate',
      async ({ request }) => {
        const parts = partsFor(request)
        return translateAction(parts, await readBody(app, request, parts.maxBodyBytes), callerOf(request))
      },
      described({
        ...action,
        right: 'submit',
        summary: 'Translate an action',
        description: 'Shows the graph that the action would become. Stores nothing.',
        answers: { 200: json(ActionResponse, 'The graph, with accepted 0.') },
        errors: { 400: 'The action is invalid.', 413: 'The body or the graph is too large.' },
      }),
    )
    .post(
      '/adapters/actions',
      async ({ set, request }) => {
        const parts = partsFor(request)
        const body = await readBody(app, request, parts.maxBodyBytes)
        const key = request.headers.get('idempotency-key')
        const answer = await actOnce(parts, body, {
          ...traceOf(set, request),
          key,
          caller: request,
          by: callerOf(request),
        })
        set.status = 202
        return answer
      },
      described({
        ...action,
        right: 'submit',
        summary: 'Run an action',
        description: 'The action becomes a graph, which is on disk before the answer.',
        headers: {
          'Idempotency-Key': 'At most 255 characters. The same key with the same body gets the first answer again.',
        },
        answers: { 202: json(ActionResponse, 'The graph is accepted.') },
        errors: {
          400: 'The action is invalid. Nothing is stored.',
          409: 'A task with one of the ids has not ended.',
          413: 'The body or the graph is too large.',
          422: 'The Idempotency-Key came with another body before.',
          503: 'The service cannot store the graph.',
        },
      }),
    )
}
