/** Callers of the runtime service with names and rights (`--tokens-file`), against the built one. Source: docs/security.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { RIGHTS } from '../../shared/contract/rights.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { startControl } from '../support/control.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const TASKS = '/api/v1/tasks'
const ALL = {
  ...Object.fromEntries(RIGHTS.map((right) => [`only-${right.replace('_', '-')}`, { rights: [right] }])),
  agent: { rights: ['read', 'submit', 'cancel_own'] },
  other: { rights: ['submit', 'cancel_own'] },
  ops: { rights: ['cancel', 'operate'] },
} as const

let tokens: Tokens
let runtime: Runtime

beforeAll(async () => {
  tokens = tokensFile(ALL)
  runtime = await startRuntime({ flags: ['--tokens-file', tokens.path], env: { SERVICE_TOKEN: 'sesame' } })
})
afterAll(async () => {
  await runtime[Symbol.asyncDispose]()
  tokens[Symbol.dispose]()
})

const ask = async (name: string, method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
  const answer = await runtime.fetch(path, {
    ...{ method, headers: { ...tokens.as(name), ...headers } },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they expect it
  return { status: answer.status, body: (text === '' ? undefined : JSON.parse(text)) as any }
}

const script = (text: string, more: object = {}) => ({ execution: { kind: 'script', script: text }, ...more })

async function submitted(name: string, body: object): Promise<string> {
  const answer = await ask(name, 'POST', TASKS, body)
  expect([answer.status, answer.body.error]).toEqual([200, undefined])
  return answer.body.task_id
}

const kill = (name: string, id: string, headers?: Record<string, string>) =>
  ask(name, 'POST', `${TASKS}/${id}/kill`, undefined, headers)

test('a route asks for its right, and says which one is missing', async () => {
  const id = await submitted('only-submit', script('true'))
  const calls = [
    ['read', 'GET', TASKS],
    ['read', 'GET', `${TASKS}/${id}/logs`],
    ['read', 'GET', '/metrics'],
    ['submit', 'POST', TASKS],
    ['cancel', 'POST', `${TASKS}/${id}/kill`],
    ['operate', 'DELETE', `${TASKS}/${id}`],
  ] as const
  for (const [right, method, path] of calls)
    for (const each of RIGHTS.filter((other) => other !== right && !(right === 'cancel' && other === 'cancel_own'))) {
      const name = `only-${each.replace('_', '-')}`
      const { status, body } = await ask(name, method, path, method === 'POST' ? {} : undefined)
      expect([each, method, path, status, body.error?.code]).toEqual([each, method, path, 403, 'permission_denied'])
      expect(body.error.message).toContain(`the token ${name} lacks the right ${right}`)
    }
})

test('without a token there is an answer to probes alone', async () => {
  for (const path of ['/healthz', '/readyz']) expect((await runtime.fetch(path)).status).toBe(200)
  for (const path of [TASKS, '/metrics', '/api/v1/runtime/info']) expect((await runtime.fetch(path)).status).toBe(401)
  expect((await ask('nobody', 'GET', TASKS)).body.error.message).toContain('the token is wrong, revoked or expired')
})

describe('a task that a token submitted', () => {
  const endless = script('exec sleep 600')

  test('has its name as owner, and only it or the right cancel ends the task', async () => {
    const id = await submitted('agent', endless)
    const refused = await kill('other', id)
    expect([refused.status, refused.body.error.message]).toEqual([
      403,
      expect.stringContaining('lacks the right cancel'),
    ])
    expect((await kill('other', id, { 'x-service-owner': 'agent' })).status).toBe(403)
    expect((await kill('ops', id)).body.error.message).toBe("kill requires owner 'agent'")
    expect((await kill('agent', id)).status).toBe(200)
    const ended = async () => (await ask('agent', 'GET', `${TASKS}/${id}`)).body as TaskStatusResponse
    expect((await until(ended, ({ status }) => status === 'cancelled')).status).toBe('cancelled')
    expect((await ask('ops', 'DELETE', `${TASKS}/${id}`, undefined, { 'x-service-owner': 'agent' })).status).toBe(204)
  })

  test('keeps the owner that it was given', async () => {
    const id = await submitted('agent', { ...endless, control_context: { owner: 'team' } })
    expect((await kill('agent', id, { 'x-service-owner': 'team' })).status).toBe(403)
    expect((await kill('ops', id, { 'x-service-owner': 'team' })).status).toBe(200)
  })
})

test('a token that is revoked reads no further, and a damaged file keeps the earlier tokens', async () => {
  using own = tokensFile({ agent: { rights: ['read', 'submit'] }, stays: { rights: ['read'] } })
  await using service = await startRuntime({ flags: ['--tokens-file', own.path], env: { SERVICE_TOKEN: 'sesame' } })
  const headers = own.as('agent')
  const { task_id } = (await (await service.post(script('echo begun; exec sleep 600'), headers)).json()) as {
    task_id: string
  }
  const logs = await service.fetch(`${TASKS}/${task_id}/logs?follow=true`, { headers })
  const wait = service.fetch(`${TASKS}/${task_id}?wait_ms=60000`, { headers })
  own.put({ stays: { rights: ['read'] } })
  expect(await logs.text()).toBe('begun\n')
  expect((await (await wait).json()) as object).toMatchObject({ status: 'running' })
  expect((await service.fetch(TASKS, { headers })).status).toBe(401)
  own.write('{"tokens": [{"name": "stays", "rights": ["read"], "types": ["noop"]}]}')
  const health = async () => (await (await service.fetch('/healthz')).json()) as { tokens_fault?: string }
  const { tokens_fault } = await until(health, (answer) => answer.tokens_fault !== undefined)
  expect(tokens_fault).toBe('tokens[0].hash is required')
  expect((await service.fetch(TASKS, { headers: own.as('stays') })).status).toBe(200)
})

test('control works with the token of the service, and a token of one is nothing at the other', async () => {
  using ofControl = tokensFile({ person: { rights: [...RIGHTS] } })
  await using control = await startControl({
    ...{ flags: ['--runtime-url', runtime.url, '--tokens-file', ofControl.path] },
    env: { SERVICE_RUNTIME_TOKEN: 'sesame', SERVICE_TOKEN: 'open' },
  })
  const as = (authorization: string) => ({ headers: { authorization } })
  const body = JSON.stringify({ tasks: [{ id: 'a', type: 'runtime.script', params: { script: 'echo done' } }] })
  const put = await control.fetch('/tasks', { method: 'POST', body, headers: ofControl.as('person') })
  expect(put.status).toBe(202)
  const done = await control.fetch('/tasks/a?wait_ms=30000', { headers: ofControl.as('person') })
  expect(await done.json()).toMatchObject({ status: 'success' })
  expect((await control.fetch('/tasks', as('Bearer token-of-agent'))).status).toBe(401)
  expect((await runtime.fetch(TASKS, as('Bearer token-of-person'))).status).toBe(401)
})
