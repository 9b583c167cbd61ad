/**
 * Runtime tasks over crashes and restarts of control, of the runtime service and of both, and over a link that loses
 * answers: what ran, ran once, and both know how it ended. A task notes each run in a file.
 * Source: contract 1, Executors (runtime) and 5, Durability; architecture 2.
 */
import { describe, expect, test } from 'bun:test'
import { freePort } from '../support/free-port.ts'
import { lossyLink } from '../support/lossy-link.ts'
import { Pair, startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { isAlive, until } from '../support/until.ts'

/** Notes its run, says that it runs, and ends with 7 once it may. */
const gated = (pair: Pair) => `echo ran >> ${pair.file('ran')}; echo; ${waitFor(pair.file('go'))}; exit 7`
const open = (pair: Pair) => Bun.write(pair.file('go'), '')

/** Both, with a link between them; control is not started yet. */
const linkedPair = async () => {
  const port = await freePort()
  const link = lossyLink(() => `http://127.0.0.1:${port}`)
  const pair = new Pair(port, { ...HURRY, runtimeUrl: () => link.url })
  await pair.startRuntime()
  return { pair, link }
}

async function endedOnce(pair: Pair, id = 'a'): Promise<void> {
  const { here, there } = await pair.ended(id)
  expect(here).toMatchObject({ status: 'failed', attempt: 1, error: 'task exited with code 7' })
  expect(here.handle_id).toBe(`${id}-${here.graph_id}-1`)
  expect(there).toMatchObject({ status: 'failed', exit_code: 7 })
  expect(pair.lines('ran')).toEqual(['ran'])
  await pair.isQuiet()
}

const SIGNALS = ['SIGKILL', 'SIGTERM'] as const
/** A stop waits for running tasks; these are not to be waited for. */
const HURRY = { controlFlags: ['--shutdown-timeout', '0s'] }

describe.each(SIGNALS)('a running task, over a %s', (signal) => {
  test('of control, is followed again', async () => {
    await using pair = await startPair(HURRY)
    await pair.script('a', gated(pair))
    const { pid } = await pair.running('a')
    await pair.stopControl(signal)
    expect(await isAlive(pid!)).toBe(true)
    await pair.startControl()
    const { status, attempt, handle_id } = await pair.control.reached('a', 'running')
    expect({ status, attempt }).toEqual({ status: 'running', attempt: 1 })
    expect(handle_id).toBeDefined()
    await open(pair)
    await endedOnce(pair)
  })

  test('of control, and its end in the meantime, is told as it was', async () => {
    await using pair = await startPair(HURRY)
    await pair.script('a', gated(pair))
    const { task_id } = await pair.running('a')
    await pair.stopControl(signal)
    await open(pair)
    await pair.runtime.ended(task_id)
    await pair.startControl()
    await endedOnce(pair)
  })

  test.each([
    ['the journal', '1h'],
    ['the state file', '20ms'],
  ])(
    'of control with another SERVICE_RUNTIME_OWNER, still has the owner it was submitted with: %s knows',
    async (_, interval) => {
      const controlEnv: Record<string, string> = { SERVICE_RUNTIME_OWNER: 'ada' }
      await using pair = await startPair({
        controlEnv,
        controlFlags: [...HURRY.controlFlags, '--persist-interval', interval],
      })
      await pair.script('a', gated(pair))
      const { pid, task_id } = await pair.running('a')
      if (interval === '20ms') {
        await until(
          async () =>
            Bun.file(pair.file('control/state.json'))
              .text()
              .catch(() => ''),
          (text) => text.includes('handle_taken'),
        )
      }
      await pair.stopControl(signal)
      controlEnv.SERVICE_RUNTIME_OWNER = 'bob'
      await pair.startControl()
      await pair.control.reached('a', 'running')
      expect((await pair.control.fetch('/tasks/a/cancel', { method: 'POST' })).status).toBe(202)
      expect((await pair.control.ended('a')).status).toBe('cancelled')
      expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
      expect(await isAlive(pid!)).toBe(false)
      // What the runtime service keeps of it takes the same owner to be removed.
      expect((await pair.control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
      await until(async () => (await pair.runtime.fetch(`/api/v1/tasks/${task_id}`)).status, 404)
      await pair.isQuiet()
    },
  )

  test.each([
    ['known from the journal', '1h', 7],
    ['when the state file has been written without it', '20ms', 7],
    ['when its graph has nothing else', '20ms', 0],
  ])('of control, is followed to its end although it was deleted, %s', async (when, interval, exitCode) => {
    await using pair = await startPair({ controlFlags: [...HURRY.controlFlags, '--persist-interval', interval] })
    const isAlone = when.includes('nothing else')
    const script = `echo ran >> ${pair.file('ran')}; echo; ${waitFor(pair.file('go'))}; exit ${exitCode}`
    await pair.control.submit([
      { id: 'a', type: 'runtime.script', params: { script } },
      ...(isAlone ? [] : [{ id: 'after', type: 'noop', depends_on: ['a'] }]),
    ])
    const { pid, task_id } = await pair.running('a')
    expect((await pair.control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
    if (interval === '20ms') {
      await until(
        async () =>
          Bun.file(pair.file('control/state.json'))
            .text()
            .catch(() => '"a":'),
        (text) => !text.includes('"a":'),
      )
    }
    for (let restart = 0; restart < 2; restart++) {
      await pair.stopControl(signal)
      await pair.startControl()
      // Neither ended nor forgotten: it runs on, nobody sees it, and its id is taken.
      expect(await isAlive(pid!)).toBe(true)
      expect((await pair.control.fetch('/tasks/a')).status).toBe(404)
      const again = await pair.control.post({ tasks: [{ id: 'a', type: 'noop' }] })
      expect([again.status, await again.json()]).toEqual([
        409,
        { error: expect.stringContaining('task already active: a (in graph ') },
      ])
      if (!isAlone) expect((await pair.control.get('after')).status).toBe('pending')
    }
    await open(pair)
    if (!isAlone) {
      expect(await pair.control.ended('after')).toMatchObject({ status: 'skipped', error: 'dependency a failed' })
    }
    // Its outcome is dropped, its id is free, and the runtime service has removed what it kept of it.
    await until(async () => (await pair.control.post({ tasks: [{ id: 'a', type: 'noop' }] })).status, 202)
    await until(async () => (await pair.runtime.fetch(`/api/v1/tasks/${task_id}`)).status, 404)
    expect(pair.lines('ran')).toEqual(['ran'])
    await pair.isQuiet()
  })

  test('of the runtime service, is followed again when that is back', async () => {
    await using pair = await startPair()
    await pair.script('a', gated(pair))
    await pair.running('a')
    await pair.stopRuntime(signal)
    await until(
      () => pair.control.log,
      (log) => log.some(({ msg }) => msg === 'the runtime service is away, waiting for it'),
    )
    await open(pair)
    await pair.startRuntime()
    await endedOnce(pair)
  })

  test('of both, is followed again, whichever is back first', async () => {
    await using pair = await startPair(HURRY)
    await pair.script('a', gated(pair))
    await pair.running('a')
    await Promise.all([pair.stopControl(signal), pair.stopRuntime(signal)])
    await pair.startControl()
    await pair.startRuntime()
    await pair.control.reached('a', 'running')
    await Promise.all([pair.stopControl(signal), pair.stopRuntime(signal)])
    await open(pair)
    await pair.startRuntime()
    await pair.startControl()
    await endedOnce(pair)
  })

  test('of control while it waits in the queue there, is followed again', async () => {
    await using pair = await startPair({ ...HURRY, runtimeFlags: ['--max-running-tasks', '1'] })
    await pair.script('holder', `echo; ${waitFor(pair.file('go'))}`)
    await pair.running('holder')
    await pair.script('a', gated(pair))
    await pair.there('a', ({ status }) => status === 'accepted')
    await pair.stopControl(signal)
    await pair.startControl()
    await open(pair)
    await endedOnce(pair)
  })
})

describe('after a restart of control', () => {
  test('the timeout still counts from the start of the attempt', async () => {
    await using pair = await startPair(HURRY)
    await pair.script('a', gated(pair), { timeout: 10_000 })
    await pair.running('a')
    const { runtime } = await pair.control.get('a')
    await pair.stopControl('SIGKILL')
    await pair.startControl()
    const { here, there } = await pair.ended('a')
    expect(here).toMatchObject({ status: 'failed', attempt: 1, error: 'task timed out after 10000ms' })
    expect(here.runtime?.started_at).toBe(runtime!.started_at!)
    expect(there.status).toBe('cancelled')
  })

  test('an end before the timeout is told as it was, however late', async () => {
    await using pair = await startPair(HURRY)
    await pair.script('a', gated(pair), { timeout: 10_000 })
    const { task_id } = await pair.running('a')
    await pair.stopControl('SIGKILL')
    await open(pair)
    const { finished_at } = await pair.runtime.ended(task_id)
    await until(
      () => Date.now() - Date.parse(finished_at!),
      (ms) => ms > 10_000,
    )
    await pair.startControl()
    await endedOnce(pair)
  })

  test('an end for the timeout is told as such, although the crash came before it could be', async () => {
    const { pair, link } = await linkedPair()
    await using _link = link
    await using _pair = pair
    await pair.startControl()
    link.loseAnswers((request) => {
      if (request.endsWith('/kill')) pair.control.process.kill('SIGKILL')
      return false
    })
    await pair.script('a', gated(pair), { timeout: 10_000 })
    const { task_id } = await pair.running('a')
    await pair.control.process.exited
    expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
    link.loseAnswers(() => false)
    await pair.stopControl('SIGKILL') // it is gone; what it had goes too
    await pair.startControl()
    const { here } = await pair.ended('a')
    expect(here).toMatchObject({ status: 'failed', attempt: 1, error: 'task timed out after 10000ms' })
    expect(here.runtime?.error).toMatchObject({ code: 'timeout', retryable: true })
  })

  test('a task goes on to its next attempt as ever', async () => {
    await using pair = await startPair(HURRY)
    await pair.script('a', gated(pair), { retry: 1 })
    await pair.running('a')
    await pair.stopControl('SIGKILL')
    await open(pair)
    await pair.startControl()
    const { here } = await pair.ended('a')
    expect(here).toMatchObject({ attempt: 2, error: 'task failed after all retries: task exited with code 7' })
    expect(pair.lines('ran')).toEqual(['ran', 'ran'])
  })

  test('a task that the runtime service has forgotten has failed, and does not run again', async () => {
    await using pair = await startPair({ ...HURRY, runtimeFlags: ['--result-retention-secs', '1'] })
    await pair.script('a', gated(pair))
    const { task_id } = await pair.running('a')
    await pair.stopControl('SIGTERM')
    await open(pair)
    await until(async () => (await pair.runtime.fetch(`/api/v1/tasks/${task_id}`)).status, 404)
    await pair.startControl()
    const here = await pair.control.ended('a')
    expect(here).toMatchObject({ status: 'failed', runtime: { error: { code: 'not_found', source: 'runtime' } } })
    expect(here.error).toContain('does not know task')
    expect(pair.lines('ran')).toEqual(['ran'])
  })

  test('a runtime service that is away at first is waited for, as it may have the task', async () => {
    await using pair = await startPair(HURRY)
    await pair.script('a', gated(pair))
    await pair.running('a')
    await Promise.all([pair.stopControl('SIGKILL'), pair.stopRuntime('SIGKILL')])
    await pair.startControl()
    await until(
      () => pair.control.log,
      (log) => log.some(({ msg }) => msg === 'the runtime service is away, waiting for it'),
    )
    await open(pair)
    await pair.startRuntime()
    await endedOnce(pair)
  })
})

test('a runtime service that stays away fails the attempt, which it ends when it is back', async () => {
  await using pair = await startPair({ controlFlags: ['--runtime-away-timeout', '200ms'] })
  await pair.script('a', gated(pair))
  const { task_id } = await pair.running('a')
  await pair.stopRuntime('SIGKILL')
  const here = await pair.control.ended('a')
  expect(here.error).toStartWith('lost touch with the runtime service for 200ms: cannot reach the runtime service at ')
  expect(here.runtime?.error).toMatchObject({ code: 'external_failure', retryable: true })
  await pair.startRuntime()
  expect((await pair.runtime.ended(task_id)).status).toBe('cancelled')
})

describe('a link that loses answers', () => {
  test('of a submission: the task is found there, and runs once', async () => {
    const { pair, link } = await linkedPair()
    await using _link = link
    await using _pair = pair
    link.loseAnswers((request) => request === 'POST /api/v1/tasks')
    await pair.startControl()
    await pair.script('a', gated(pair))
    await pair.running('a')
    await open(pair)
    await endedOnce(pair)
    expect(link.requests.filter((request) => request === 'POST /api/v1/tasks')).toHaveLength(1)
  })

  test('of a submission, and a crash of control before it could ask: the task is found there all the same', async () => {
    const { pair, link } = await linkedPair()
    await using _link = link
    await using _pair = pair
    link.loseAnswers((request) => request !== 'GET /healthz') // its answer comes before a submission
    await pair.startControl()
    await pair.script('a', gated(pair))
    await pair.running('a')
    await pair.stopControl('SIGKILL')
    link.loseAnswers(() => false)
    await pair.startControl()
    await open(pair)
    await endedOnce(pair)
  })

  test('of everything for a while: a cancel is made true all the same', async () => {
    const { pair, link } = await linkedPair()
    await using _link = link
    await using _pair = pair
    await pair.startControl()
    await pair.script('a', gated(pair))
    await pair.running('a')
    link.loseAnswers(() => true)
    await pair.control.fetch('/tasks/a/cancel', { method: 'POST' })
    await until(
      () => link.requests,
      (requests) => requests.some((request) => request.endsWith('/kill')),
    )
    link.loseAnswers(() => false)
    const { here, there } = await pair.ended('a')
    expect([here.status, there.status]).toEqual(['cancelled', 'cancelled'])
  })
})

describe('a slow link', () => {
  const SUBMISSION = 'POST /api/v1/tasks'

  test('brings a submission after its cancel: it is refused', async () => {
    const { pair, link } = await linkedPair()
    await using _link = link
    await using _pair = pair
    await pair.startControl()
    const release = link.hold((request) => request === SUBMISSION)
    await pair.script('a', gated(pair))
    await until(
      () => link.requests,
      (requests) => requests.includes(SUBMISSION),
    )
    await pair.control.fetch('/tasks/a/cancel', { method: 'POST' })
    expect((await pair.control.ended('a')).status).toBe('cancelled')
    release()
    await until(
      () => pair.runtime.log,
      (log) => log.some(({ status, path }) => status === 409 && path === '/api/v1/tasks'),
    )
    expect(await pair.runtime.list()).toEqual([])
    expect(pair.lines('ran')).toEqual([])
  })

  test('does not have a cancelled task submitted once it has told that it is not there', async () => {
    const { pair, link } = await linkedPair()
    await using _link = link
    await using _pair = pair
    link.hold((request) => request === SUBMISSION) // for ever: it is lost
    await pair.startControl()
    await pair.script('a', gated(pair))
    await until(
      () => link.requests,
      (requests) => requests.includes(SUBMISSION),
    )
    await pair.stopControl('SIGKILL')
    const releaseQuestion = link.hold((request) => request.startsWith('GET '))
    await pair.startControl()
    await until(
      () => link.requests.at(-1),
      (request) => request!.startsWith('GET '),
    )
    await pair.control.fetch('/tasks/a/cancel', { method: 'POST' })
    expect((await pair.control.ended('a')).status).toBe('cancelled')
    releaseQuestion()
    await pair.script('b', 'true')
    await pair.ended('b')
    expect(link.requests.filter((request) => request === SUBMISSION)).toHaveLength(2)
    expect(pair.lines('ran')).toEqual([])
  })
})
