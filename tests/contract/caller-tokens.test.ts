/** Callers with names and rights (`--tokens-file`), against the built service and client. Source: docs/security.md. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { RIGHTS } from '../../shared/contract/rights.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { connectClient, ERAS } from '../support/mcp-client.ts'
import { tempDir } from '../support/temp.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const ALL = {
  ...Object.fromEntries(RIGHTS.map((right) => [`only-${right.replace('_', '-')}`, { rights: [right] }])),
  ada: { rights: ['read', 'submit', 'answer'] },
  bob: { rights: ['read', 'answer'] },
  own: { rights: ['read', 'submit', 'answer'], approve_own: true },
  agent: { rights: ['read', 'submit', 'cancel_own'] },
  ops: { rights: ['read', 'cancel', 'answer', 'operate'] },
  lead: { rights: ['read', 'submit', 'cancel', 'answer'] },
  late: { rights: ['read'], expires: '2020-01-01T00:00:00Z' },
  team: { rights: ['submit'], types: ['noop', 'os'], labels: { team: 'a' } },
  slow: { rights: ['submit'], graphs_per_minute: 1 },
  small: { rights: ['submit'], live_tasks: 1 },
} as const

const approval = (id: string, params: object = {}) => ({ id, type: 'approval', params })

let tokens: Tokens
let control: Control

beforeAll(async () => {
  tokens = tokensFile(ALL)
  control = await startControl({ flags: ['--tokens-file', tokens.path], env: { SERVICE_TOKEN: 'sesame' } })
})
afterAll(async () => {
  await control.dispose()
  tokens[Symbol.dispose]()
})

const ask = async (name: string, path: string, { method = 'GET', body }: { method?: string; body?: unknown } = {}) => {
  const answer = await control.fetch(path, {
    ...{ method, headers: tokens.as(name) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they expect it
  return { status: answer.status, headers: answer.headers, body: (text === '' ? undefined : JSON.parse(text)) as any }
}

const post = (name: string, path: string, body?: unknown) => ask(name, path, { method: 'POST', body })

async function submitted(name: string, tasks: readonly object[], more: object = {}): Promise<string> {
  const { status, body } = await post(name, '/tasks', { scope: 'graph', tasks, ...more })
  expect([status, body.error]).toEqual([202, undefined])
  return body.graph_id
}

const asked = (graph: string, id: string) =>
  until(
    async () => (await ask('only-read', `/graphs/${graph}/tasks/${id}`)).body as TaskRecord,
    ({ waiting }) => waiting?.reason === 'approval',
  )

describe('a token', () => {
  test('is needed, and only the header carries it', async () => {
    for (const path of ['/tasks', '/events', '/metrics', '/graphs', '/nothing', '/tasks?token=token-of-ada'])
      expect([path, (await control.fetch(path)).status]).toEqual([path, 401])
    const cookie = await control.fetch('/tasks', { headers: { cookie: 'authorization=Bearer token-of-ada' } })
    expect(cookie.status).toBe(401)
    const wrong = await ask('nobody', '/tasks')
    expect([wrong.status, wrong.headers.get('www-authenticate'), wrong.body]).toEqual([
      401,
      'Bearer',
      { error: 'the token is wrong, revoked or expired' },
    ])
    expect((await ask('late', '/tasks')).status).toBe(401)
    expect((await control.fetch('/health')).status).toBe(200)
  })

  test('that lacks the right is told which one, and what to do', async () => {
    const { status, headers, body } = await post('only-read', '/tasks', { tasks: [{ id: 'x', type: 'noop' }] })
    expect([status, headers.get('www-authenticate')]).toEqual([
      403,
      'Bearer error="insufficient_scope", scope="submit"',
    ])
    expect(body).toEqual({
      error: 'the token only-read lacks the right submit (give it that right in the tokens file, or use another token)',
    })
    expect((await ask('only-submit', '/tasks')).status).toBe(403)
    expect((await control.fetch('/tasks', { method: 'HEAD', headers: tokens.as('only-submit') })).status).toBe(403)
    expect((await ask('only-read', '/tasks', { method: 'PUT' })).status).toBe(405)
    expect((await ask('only-read', '/nothing')).status).toBe(404)
  })

  test('of the service keeps all rights beside the file', async () => {
    const headers = { authorization: 'Bearer sesame' }
    const { graph_id } = await control.submit([approval('by-service')], headers)
    await asked(graph_id!, 'by-service')
    const answer = await control.fetch('/tasks/by-service/approve', {
      ...{ method: 'POST', headers, body: JSON.stringify({ who: 'me' }) },
    })
    expect(answer.status).toBe(200)
    const { body } = await ask('only-read', `/graphs/${graph_id}`)
    expect(body.submitted_by).toBeUndefined()
    expect((await ask('only-read', '/tasks/by-service')).body.result.token).toBeUndefined()
  })
})

describe('who submits', () => {
  test('may not approve, unless its token says so; the result names who answered', async () => {
    const graph = await submitted('ada', [approval('a')])
    await asked(graph, 'a')
    const path = `/graphs/${graph}/tasks/a/approve`
    const own = await post('ada', path, { who: 'ada' })
    expect([own.status, own.body.error]).toEqual([
      403,
      'task a: the token ada submitted its graph: another one has to answer (or one with approve_own)',
    ])
    expect((await post('ada', path.replace('approve', 'reject'), { who: 'ada' })).status).toBe(403)
    expect((await ask('bob', `/graphs/${graph}`)).body.submitted_by).toBe('ada')
    const { status, body } = await post('bob', path, { who: 'Bob' })
    expect([status, body.result]).toEqual([200, { approved: true, who: 'Bob', token: 'bob', at: expect.any(String) }])

    const allowed = await submitted('own', [approval('a')])
    await asked(allowed, 'a')
    expect((await post('own', `/graphs/${allowed}/tasks/a/approve`, { who: 'me' })).status).toBe(200)
  })

  test('or retries a task may not approve; graphs of others need the right to cancel', async () => {
    const graph = await submitted('ada', [
      { id: 'f', type: 'os', tool_name: 'file_read', params: { path: '/no/file' } },
      approval('a'),
    ])
    await asked(graph, 'a')
    await post('bob', `/graphs/${graph}/tasks/a/reject`, { who: 'Bob' })
    await until(
      () => ask('ada', `/graphs/${graph}`),
      ({ body }) => body.state !== 'running',
    )
    const path = `/graphs/${graph}/tasks/a`
    expect((await post('only-read', `${path}/retry`)).status).toBe(403)
    expect((await post('own', `${path}/retry`)).body.error).toStartWith('the token own lacks the right cancel')
    const both = await post('lead', `/graphs/${graph}/retry`)
    expect([both.status, both.body]).toEqual([202, { graph_id: graph, retried: ['f', 'a'], pending: 2 }])
    expect((await asked(graph, 'a')).retried).toMatchObject({ count: 1, by: ['lead'] })
    const own = await post('lead', `${path}/approve`, { who: 'me' })
    expect([own.status, own.body.error]).toEqual([
      403,
      'task a: the token lead retried tasks of its graph: another one has to answer (or one with approve_own)',
    ])
    expect((await post('ada', `${path}/approve`, { who: 'ada' })).status).toBe(403)
    expect((await post('bob', `${path}/approve`, { who: 'Bob' })).status).toBe(200)
  })

  test('and retries is held to its quotas', async () => {
    const failing = { type: 'os', tool_name: 'file_read', params: { path: '/no/file' } }
    const graph = await submitted('small', [{ id: 'f', ...failing }])
    const over = () =>
      until(
        () => ask('only-read', `/graphs/${graph}`),
        ({ body }) => body.state !== 'running',
      )
    await over()
    const other = await submitted('small', [approval('a')])
    const full = await post('small', `/graphs/${graph}/retry`)
    expect([full.status, full.body.error]).toEqual([
      ...[429, expect.stringContaining('and it may have 1: try again when some have ended')],
    ])
    await ask('ops', `/graphs/${other}/cancel`, { method: 'POST' })
    expect((await post('small', `/graphs/${graph}/retry`)).status).toBe(202)
    await over()
  })

  test('or patches a graph may not approve, nor change what an approval decides about', async () => {
    const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
    const graph = await submitted('ada', [approval('a'), noop('guarded', 'a'), noop('last', 'guarded'), approval('b')])
    await asked(graph, 'a')
    const patch = (name: string, body: object) => ask(name, `/graphs/${graph}`, { method: 'PATCH', body })
    expect((await patch('only-read', { add: [noop('n')] })).status).toBe(403)
    expect((await patch('own', { add: [noop('n')] })).body.error).toStartWith('the token own lacks the right cancel')
    const submitter = 'the token ada submitted its graph: another one has to answer (or one with approve_own)'
    for (const body of [{ remove: ['last'] }, { replace: [noop('guarded')] }, { change: { a: { params: {} } } }]) {
      const [id] = body.remove ?? (body.replace ? ['guarded'] : ['a'])
      const { status, body: answer } = await patch('ada', body)
      expect([status, answer.error]).toEqual([
        403,
        `task ${id} cannot be changed: approval a decides about it (task a: ${submitter})`,
      ])
    }
    expect((await patch('ada', { add: [noop('more', 'last')] })).status).toBe(200)
    expect((await patch('lead', { change: { last: { priority: 1 } } })).body.revision).toBe(2)
    expect((await ask('ada', `/graphs/${graph}`)).body).toMatchObject({ revision: 2, patched_by: ['ada', 'lead'] })
    const own = await post('lead', `/graphs/${graph}/tasks/a/approve`, { who: 'me' })
    expect([own.status, own.body.error]).toEqual([
      403,
      'task a: the token lead changed its graph: another one has to answer (or one with approve_own)',
    ])
    for (const id of ['a', 'b'])
      expect((await post('bob', `/graphs/${graph}/tasks/${id}/approve`, { who: 'Bob' })).status).toBe(200)
  })

  test('or patches a graph does not change what an approved task gets from others, once somebody is asked', async () => {
    const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
    const graph = await submitted('ada', [
      ...[
        { id: 'w', type: 'wait', params: { signal: true } },
        approval('a'),
        { ...approval('late'), depends_on: ['w'] },
      ],
      ...[noop('config', 'w'), noop('deploy', 'a', 'config'), noop('free', 'w'), noop('later', 'late', 'free')],
    ])
    await asked(graph, 'a')
    const replace = (id: string) =>
      ask('ada', `/graphs/${graph}`, { method: 'PATCH', body: { replace: [noop(id, 'w')] } })
    const { status, body } = await replace('config')
    expect([status, body.error]).toEqual([
      403,
      expect.stringMatching(
        /^task config cannot be changed: task deploy depends on it, and approval a decides about it /,
      ),
    ])
    expect((await replace('free')).status).toBe(200)
    await post('ops', `/graphs/${graph}/cancel`)
  })

  test('or patches a graph does not weaken an approval in a group that names others', async () => {
    const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
    for (const asks of [{ by: ['bob'] }, { by: { $param: 'by' } }]) {
      const group = {
        id: 'each',
        for_each: [1, 2],
        tasks: [approval('ask', asks), noop('m', 'ask')],
        depends_on: ['w'],
      }
      const wait = { id: 'w', type: 'wait', params: { signal: true } }
      const graph = await submitted('own', [wait, group, noop('last', 'each')], { params: { by: ['bob'] } })
      const only =
        /^task (each|last) cannot be changed: approval each\/ask decides about it \(task each\/ask: only these answer it, and not the token (own|lead): /
      for (const name of ['own', 'lead']) {
        for (const body of [
          { remove: ['last', 'each'] },
          { replace: [{ ...group, tasks: [noop('m')] }] },
          { replace: [{ ...group, tasks: [approval('ask'), noop('m', 'ask')] }] },
          { change: { each: { priority: 1 } } },
          { replace: [noop('last')] },
        ]) {
          const { status, body: answer } = await ask(name, `/graphs/${graph}`, { method: 'PATCH', body })
          expect([status, answer.error]).toEqual([403, expect.stringMatching(only)])
        }
      }
      await post('ops', `/graphs/${graph}/cancel`)
    }
  })

  test('or patches a graph does not choose who answers an approval that takes them from a task', async () => {
    const wait = { id: 'w', type: 'wait', params: { signal: true } }
    const team = (...by: string[]) => ({
      id: 'team',
      type: 'mcp',
      tool_name: 'builtin/echo',
      input: { by },
      depends_on: ['w'],
    })
    const by = { $from: 'team', path: '/result/echo/by' }
    const graph = await submitted('own', [wait, team('bob'), { ...approval('a', { by }), depends_on: ['team'] }])
    const { status, body } = await ask('own', `/graphs/${graph}`, { method: 'PATCH', body: { replace: [team('own')] } })
    expect([status, body.error]).toEqual([
      403,
      expect.stringContaining('task team cannot be changed: approval a may get from it who answers'),
    ])
    await post('own', `/graphs/${graph}/tasks/w/signal`)
    await asked(graph, 'a')
    expect((await post('own', `/graphs/${graph}/tasks/a/approve`, { who: 'me' })).status).toBe(403)
    expect((await post('bob', `/graphs/${graph}/tasks/a/approve`, { who: 'Bob' })).status).toBe(200)
  })

  test('and patches is held to the types and quotas of its token', async () => {
    const patch = (name: string, graph: string, body: object) =>
      ask(name, `/graphs/${graph}`, { method: 'PATCH', body })
    const noop = (id: string) => ({ id, type: 'noop', not_before: 60_000 })
    const one = await submitted('small', [noop('a')])
    expect((await patch('small', one, { add: [noop('b')] })).status).toBe(429)
    expect(
      (await ask('small', `/graphs/${one}?dry_run=true`, { method: 'PATCH', body: { add: [noop('b')] } })).status,
    ).toBe(429)
    expect((await patch('small', one, { replace: [noop('a')] })).status).toBe(200)
    expect((await patch('small', one, { add: [noop('b')], remove: ['a'] })).status).toBe(200)
    const other = await submitted('team', [noop('a')], { labels: { team: 'a' } })
    const { status, body } = await patch('team', other, { add: [approval('b')] })
    expect([status, body.error]).toEqual([
      ...[403, 'the token team may not submit tasks of type approval (only noop, os)'],
    ])
    for (const graph of [one, other]) await post('ops', `/graphs/${graph}/cancel`)
  })

  test('is who runs a graph again', async () => {
    const graph = await submitted('ada', [
      { id: 'f', type: 'os', tool_name: 'file_read', params: { path: '/no/file' } },
      approval('a'),
    ])
    await asked(graph, 'a')
    await post('bob', `/graphs/${graph}/tasks/a/reject`, { who: 'Bob' })
    await until(
      () => ask('ada', `/graphs/${graph}`),
      ({ body }) => body.state !== 'running',
    )
    const again = await post('own', `/graphs/${graph}/rerun`)
    expect(again.status).toBe(202)
    expect((await ask('ada', `/graphs/${again.body.graph_id}`)).body.submitted_by).toBe('own')
  })

  test('may cancel its own with cancel_own, and no other', async () => {
    const [mine, other] = [await submitted('agent', [approval('a')]), await submitted('ada', [approval('a')])]
    const refused = await post('agent', `/graphs/${other}/cancel`)
    expect([refused.status, refused.body.error]).toEqual([403, expect.stringContaining('lacks the right cancel ')])
    expect((await post('agent', `/graphs/${other}/tasks/a/cancel`)).status).toBe(403)
    await using mcp = await connectClient(control.url, 'auto', tokens.as('agent'))
    expect(await mcp.call('cancel', { graph_id: other })).toMatchObject({ isError: true })
    expect((await ask('ada', `/graphs/${other}`)).body.state).toBe('running')
    expect(await mcp.call('cancel', { graph_id: mine })).toMatchObject({ isError: false })
    expect((await ask('ada', `/graphs/${mine}`)).body.state).toBe('cancelled')
    expect((await post('ops', `/graphs/${other}/cancel`)).status).toBe(202)
  })
})

describe('an approval with by', () => {
  test.each([
    [['bob'], 'bob', 200],
    [['bob'], 'ops', 403],
    [['operate'], 'ops', 200],
    [['operate'], 'bob', 403],
    [['carl', 'operate'], 'ops', 200],
  ] as const)('%j is answered by %s: %d', async (by, name, expected) => {
    const graph = await submitted('ada', [approval('a', { by })])
    await asked(graph, 'a')
    const { status, body } = await post(name, `/graphs/${graph}/tasks/a/approve`, { who: 'x' })
    expect([status, body.error]).toEqual([
      expected,
      expected === 200 ? undefined : expect.stringContaining('only these answer it'),
    ])
  })

  test('does not let the submitter answer that it names itself', async () => {
    const graph = await submitted('ada', [approval('a', { by: ['ada', 'submit'] })])
    await asked(graph, 'a')
    expect((await post('ada', `/graphs/${graph}/tasks/a/approve`, { who: 'x' })).status).toBe(403)
  })

  test.each([[[]], ['bob'], [[1]], [Array(33).fill('bob')]])('%j fails the task', async (by) => {
    const graph = await submitted('ada', [approval('a', { by })])
    const { body } = await until(
      () => ask('ada', `/graphs/${graph}/tasks/a`),
      ({ body }) => body.status !== 'pending',
    )
    expect(body).toMatchObject({
      status: 'failed',
      error: expect.stringContaining('by: expected list of 1 to 32 names'),
    })
  })
})

describe('what a token may submit', () => {
  const graph = (type: string, labels?: object) => ({
    scope: 'graph',
    tasks: [{ id: 'x', type }],
    ...(labels && { labels }),
  })

  test('has types and labels, at every door', async () => {
    expect((await post('team', '/tasks', graph('noop', { team: 'a' }))).status).toBe(202)
    expect((await post('team', '/tasks', graph('noop'))).body.error).toBe(
      'a graph of the token team needs the label team with the value "a"',
    )
    expect((await post('team', '/tasks', graph('approval', { team: 'a' }))).body.error).toBe(
      'the token team may not submit tasks of type approval (only noop, os)',
    )
    expect((await post('team', '/mcp/call', { tool_name: 'builtin/echo', input: {} })).status).toBe(403)
    const action = { adapter: 'codex', action_id: 'x', action: { kind: 'os.shell', input: { command: 'ls' } } }
    expect((await post('team', '/adapters/actions', action)).status).toBe(403)
    await using mcp = await connectClient(control.url, 'auto', tokens.as('team'))
    const { isError, text } = await mcp.call('submit_graph', { tasks: [{ id: 'x', type: 'noop' }] })
    expect([isError, text]).toEqual([true, 'a graph of the token team needs the label team with the value "a"'])
  })

  test('has a rate and a number of live tasks: 429 with Retry-After', async () => {
    const held = { tasks: [approval('held')], scope: 'graph' }
    expect((await post('slow', '/tasks', held)).status).toBe(202)
    const { status, headers } = await post('slow', '/tasks', held)
    expect([status, Number(headers.get('retry-after')) > 5]).toEqual([429, true])
    const first = await post('small', '/tasks', held)
    expect(first.status).toBe(202)
    expect((await post('small', '/tasks', held)).status).toBe(429)
    expect((await post('ops', `/graphs/${first.body.graph_id}/cancel`)).status).toBe(202)
    expect((await post('small', '/tasks', held)).status).toBe(202)
  })
})

describe.each(ERAS)('the MCP server, era %s', (era) => {
  const namesFor = async (name: string, path = '/mcp'): Promise<string[]> => {
    await using mcp = await connectClient(control.url, era, tokens.as(name), undefined, path)
    return (await mcp.client.listTools()).tools.map((tool) => tool.name)
  }

  test('shows and runs the tools that the rights allow', async () => {
    expect(await namesFor('only-submit')).toEqual(['submit_graph', 'run_action', 'rerun_graph'])
    expect(await namesFor('only-answer')).toEqual(['answer_approval'])
    expect(await namesFor('only-cancel-own')).toEqual(['cancel'])
    expect(await namesFor('only-cancel')).toEqual(['cancel'])
    expect(await namesFor('only-operate')).toEqual([])
    const schedules = '/mcp?toolsets=schedules'
    expect(await namesFor('only-read', schedules)).toEqual(['list_schedules'])
    expect(await namesFor('only-operate', schedules)).toEqual(['put_schedule', 'change_schedule'])
    expect(await namesFor('only-submit', '/mcp?toolsets=live')).toEqual(['retry_task', 'patch_graph'])
    await using reader = await connectClient(control.url, era, tokens.as('only-read'), undefined, schedules)
    const refused = await reader.call('change_schedule', { name: 'x', verb: 'delete' })
    expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining('lacks the right operate')])
    const agent = await namesFor('agent')
    expect([agent.length, agent.includes('answer_approval')]).toEqual([12, false])
    await using mcp = await connectClient(control.url, era, tokens.as('agent'))
    const graph = await submitted('ada', [approval('a')])
    await asked(graph, 'a')
    const { isError, text } = await mcp.call('answer_approval', { task_id: `${graph}/a`, approved: true, who: 'me' })
    expect([isError, text]).toEqual([true, expect.stringContaining('the token agent lacks the right answer')])
    expect((await ask('ada', `/graphs/${graph}/tasks/a`)).body.status).toBe('pending')
    expect((await post('ops', `/graphs/${graph}/cancel`)).status).toBe(202)
  })
})

test('a host with a user is asked for no approval that its token may not answer', async () => {
  for (const [name, graph] of [
    ['agent', await submitted('ada', [approval('a')])],
    ['ada', await submitted('ada', [approval('a')])],
  ] as const) {
    await asked(graph, 'a')
    let questions = 0
    await using mcp = await connectClient(control.url, 'auto', tokens.as(name), () => {
      questions++
      return { action: 'accept', content: { decision: 'approve', who: 'me' } }
    })
    await mcp.call('wait', { graph_id: graph, timeout_ms: 500 })
    expect([name, questions]).toEqual([name, 0])
    expect((await ask('ada', `/graphs/${graph}/tasks/a`)).body.status).toBe('pending')
    expect((await post('ops', `/graphs/${graph}/cancel`)).status).toBe(202)
  }
})

describe('a file that changes', () => {
  const world = async (more: Parameters<typeof tokensFile>[0] = {}) => {
    const own = tokensFile({ a: { rights: ['read', 'submit'] }, ...more })
    const service = await startControl({
      ...{ flags: ['--tokens-file', own.path], env: { SERVICE_SHELL_POLICY: 'open' } },
    })
    const status = async (name: string, path = '/tasks') =>
      (await service.fetch(path, { headers: own.as(name) })).status
    return {
      ...{ own, service, status },
      async [Symbol.asyncDispose]() {
        await service.dispose()
        own[Symbol.dispose]()
      },
    }
  }

  test('revokes: streams, followed logs and waits end, and requests get 401', async () => {
    await using here = await world({ b: { rights: ['read', 'submit'] } })
    const { own, service, status } = here
    const sleep = {
      id: 's',
      type: 'os',
      tool_name: 'shell',
      params: { command: 'sh', args: ['-c', 'echo said; sleep 600'] },
    }
    const { graph_id } = await service.submit([sleep], own.as('a'))
    await until(
      async () => (await service.fetch('/tasks/s', { headers: own.as('b') })).json(),
      (task) => (task as TaskRecord).status === 'running',
    )
    const streams = ['/events', `/graphs/${graph_id}/events`, '/tasks/s/events'].map((path) =>
      EventStreamClient.open(service.url + path, own.as('a')),
    )
    const opened = await Promise.all(streams)
    const kept = await EventStreamClient.open(`${service.url}/events`, own.as('b'))
    const texts = await Promise.all(
      [{}, { accept: 'text/event-stream' }].map((more) =>
        service.fetch('/tasks/s/logs?follow=true', { headers: { ...own.as('a'), ...more } }),
      ),
    )
    const waited = service.fetch('/tasks/s?wait_ms=60000', { headers: own.as('a') })
    own.put({ b: { rights: ['read', 'submit'] } })
    await Promise.all(opened.map((stream) => stream.ended()))
    expect(await texts[0]!.text()).toBe('said\n')
    expect(await texts[1]!.text()).toContain('event: ')
    expect((await waited).status).toBe(200)
    expect([await status('a'), await status('b')]).toEqual([401, 200])
    const next = await service.submit([{ id: 'next', type: 'noop' }], own.as('b'))
    await kept.once((events) => events.some((event) => 'graph_id' in event && event.graph_id === next.graph_id))
    expect(kept.hasEnded).toBe(false)
    await kept[Symbol.asyncDispose]()
  })

  test('ends the streams of a token whose time is over', async () => {
    await using here = await world()
    const expires = new Date(Date.now() + 3_000).toISOString()
    here.own.put({ brief: { rights: ['read'], expires } })
    await until(
      () => here.status('brief'),
      (status) => status === 200,
    )
    const stream = await EventStreamClient.open(`${here.service.url}/events`, here.own.as('brief'))
    await stream.ended()
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expires))
    expect(await here.status('brief')).toBe(401)
  })

  test('to one that is damaged leaves the earlier tokens, which /health and the log say', async () => {
    await using here = await world()
    const { own, service } = here
    const health = async () => (await (await service.fetch('/health')).json()) as Record<string, unknown>
    expect(await health()).not.toHaveProperty('tokens_fault')
    own.write('{"tokens":[{"name":"a"}]}')
    expect(await until(health, ({ tokens_fault }) => tokens_fault !== undefined)).toMatchObject({
      tokens_fault: 'tokens[0].hash is required',
    })
    expect(await here.status('a')).toBe(200)
    expect(service.log).toContainEqual(
      expect.objectContaining({ msg: 'tokens file cannot be used: the earlier tokens stay in force' }),
    )
    own.put({ b: { rights: ['read'] } })
    await until(
      () => here.status('b'),
      (status) => status === 200,
    )
    expect([await here.status('a'), await health()]).toEqual([
      401,
      expect.not.objectContaining({ tokens_fault: expect.anything() }),
    ])
  })
})

test('the name of who submitted survives a kill, a restart and compaction', async () => {
  using own = tokensFile({ a: { rights: ['read', 'submit', 'answer'] } })
  using dir = tempDir()
  const start = () =>
    startControl({ dataDir: dir.path, flags: ['--tokens-file', own.path, '--persist-interval', '50ms'] })
  const byOf = async (service: Control, graph: string) =>
    ((await (await service.fetch(`/graphs/${graph}`, { headers: own.as('a') })).json()) as { submitted_by: string })
      .submitted_by
  const graphs: string[] = []
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGTERM'] as const) {
    await using service = await start()
    for (const graph of graphs) expect(await byOf(service, graph)).toBe('a')
    const tasks = [{ id: crypto.randomUUID(), type: 'noop' }]
    const [ended, waiting] = [
      await service.submit(tasks, own.as('a')),
      await service.submit([approval(crypto.randomUUID())], own.as('a')),
    ]
    graphs.push(ended.graph_id!, waiting.graph_id!)
    const path = `/graphs/${waiting.graph_id}/tasks/${waiting.task_ids[0]}/approve`
    const answer = () => service.fetch(path, { method: 'POST', headers: own.as('a'), body: '{"who":"a"}' })
    await until(answer, ({ status }) => status === 403)
    await service.stop(signal)
  }
})

describe('taskmill token', () => {
  const run = (args: readonly string[], file: string, url?: string) =>
    runClient(['token', ...args], { env: { SERVICE_TOKENS_FILE: file }, ...(url !== undefined && { url }) })

  test.each([
    ['tokens.json', '{"tokens": []}'],
    ['tokens.toml', 'tokens = [] # nobody yet'],
  ])('makes a token that the service knows, shows it once, and revokes it: %s', async (name, text) => {
    using dir = tempDir()
    const file = join(dir.path, name)
    writeFileSync(file, text, { mode: 0o600 })
    await using service = await startControl({ flags: ['--tokens-file', file] })
    const made = await run(
      [
        'create',
        'ci',
        '--rights',
        'read,submit',
        '--expires',
        '30d',
        '--types',
        'noop',
        '--label',
        'team=a',
        '--tenant',
        'a',
      ],
      file,
    )
    const { token, ...shown } = made.envelope.data as { token: string }
    expect(shown).toMatchObject({
      name: 'ci',
      rights: ['read', 'submit'],
      tenant: 'a',
      types: ['noop'],
      labels: { team: 'a' },
      expired: false,
    })
    expect(readFileSync(file, 'utf8')).not.toContain(token)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const status = async () => (await service.fetch('/tasks', { headers: { authorization: `Bearer ${token}` } })).status
    await until(status, (found) => found === 200)
    const listed = await run([], file)
    expect(listed.stdout).not.toContain('sha256')
    expect(listed.envelope.data).toMatchObject({ tokens: [{ name: 'ci' }] })
    const client = await runClient(['list'], { url: service.url, env: { SERVICE_TOKEN: token } })
    expect(client.exitCode).toBe(0)
    const refused = await runClient(['runtimes', 'drain', 'x'], { url: service.url, env: { SERVICE_TOKEN: token } })
    expect(refused.envelope.error).toMatchObject({ status_code: 403 })
    expect((await run(['revoke', 'ci'], file)).exitCode).toBe(0)
    await until(status, (found) => found === 401)
  })

  test('makes the file, for its user alone; keeps the mode of one that is there', async () => {
    using dir = tempDir()
    const file = join(dir.path, 'tokens.json')
    expect((await run(['create', 'a', '--rights', 'read'], file)).exitCode).toBe(0)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    chmodSync(file, 0o640)
    expect((await run(['create', 'b', '--rights', 'read'], file)).exitCode).toBe(0)
    expect(statSync(file).mode & 0o777).toBe(0o640)
  })

  test('several at a time lose no token', async () => {
    using dir = tempDir()
    const file = join(dir.path, 'tokens.json')
    const names = ['a', 'b', 'c', 'd', 'e', 'f']
    const runs = await Promise.all(names.map((name) => run(['create', name, '--rights', 'read'], file)))
    expect(runs.map(({ exitCode }) => exitCode)).toEqual(names.map(() => 0))
    const { tokens: all } = (await run(['list'], file)).envelope.data as { tokens: { name: string }[] }
    expect(all.map(({ name }) => name).sort()).toEqual(names)
  })

  test.each<[args: string[], exitCode: number, message: string]>([
    [['create'], 2, 'token create needs NAME'],
    [['create', 'x'], 2, 'token create needs --rights'],
    [['create', 'x y', '--rights', 'read'], 2, 'invalid name "x y"'],
    [['create', 'x', '--rights', 'reed'], 2, 'unknown right "reed" (did you mean read?)'],
    [['create', 'x', '--rights', 'read', '--expires', 'soon'], 2, 'expected a duration, such as 30d'],
    [['create', 'x', '--rights', 'read', '--tenant', 'a b'], 2, 'invalid value "a b" for --tenant: expected 1 to 64'],
    [['create', 'x', '--rights', 'read', '--label', 'a'], 2, 'expected key=value'],
    [['create', 'ci', '--rights', 'read'], 1, 'has a token ci already'],
    [['revoke', 'cj'], 1, 'has no token cj'],
    [['revoke', 'ci', '--rights', 'read'], 2, '--rights is for token create'],
    [['destroy'], 2, 'unknown subcommand "token destroy"'],
    [['ad'], 2, 'unknown subcommand "token ad"'],
  ])('%j is refused with %d', async (args, exitCode, message) => {
    using own = tokensFile({ ci: { rights: ['read'] } })
    const before = readFileSync(own.path, 'utf8')
    const found = await run(args, own.path)
    expect([found.exitCode, found.envelope.error?.message]).toEqual([exitCode, expect.stringContaining(message)])
    expect(readFileSync(own.path, 'utf8')).toBe(before)
  })
})
