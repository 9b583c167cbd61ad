/**
 * Kills the service at random moments while approvals are asked for, answered and timed out, and waits signalled and over.
 *
 * Each round starts it on the directory of the round before. Clients submit graphs with an approval, look at it and answer it,
 * until SIGKILL. After the last start whatever still waits is approved. Then each approval must have the answer that was
 * acknowledged, or one that was sent, or its timeout; it must have been asked for at the time that somebody saw; and what
 * depends on it must have run if and only if it was approved.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { ApprovalResult } from '../../shared/contract/approval.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { type Control, startControl } from '../support/control.ts'
import { CrashStory } from '../support/crash-story.ts'
import { limitOf, type Random, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { exitOf } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

type Verb = 'approve' | 'reject' | 'signal'

/** What a client knows of the approval or the wait of a graph. */
interface Known {
  readonly type: 'approval' | 'wait'
  readonly message: string
  readonly timeout: number | undefined
  /** A wait succeeds after that time. */
  readonly isUntil: boolean
  /** When its time is over, as a record said. */
  until?: string
  /** Answers that may have arrived, as names of those who gave them. */
  readonly sent: Map<string, Verb>
  /** The name of the one that was acknowledged. */
  acknowledged?: string
}

const pathOf = (graphId: string, task = 'sure') => `/graphs/${graphId}/tasks/${task}`

const recordOf = async (control: Control, path: string) => (await (await control.fetch(path)).json()) as TaskRecord

const graphWith = ({ type, message, timeout, isUntil }: Known) => ({
  scope: 'graph',
  tasks: [
    { id: 'plan', type: 'noop', params: { message } },
    {
      ...{ id: 'sure', type, depends_on: ['plan'], retry: 2 },
      params: {
        message: { $from: 'plan', path: '/result/message' },
        ...(isUntil && { until: timeout, signal: true }),
      },
      ...(!isUntil && timeout !== undefined && { timeout }),
    },
    { id: 'next', type: 'noop', depends_on: ['sure'] },
  ],
})

/** One client, until the service is gone. */
async function client(control: Control, all: Map<string, Known>, random: Random): Promise<void> {
  try {
    for (;;) {
      const timeouts = [undefined, 5 + random(50), 60_000]
      const timeout = timeouts[random(3)]
      const type = random(3) === 0 ? 'wait' : 'approval'
      const isUntil = type === 'wait' && timeout !== undefined && random(2) === 0
      const known: Known = { type, message: `plan ${random(1_000_000)}`, timeout, isUntil, sent: new Map() }
      const response = await control.post(graphWith(known))
      expect(response.status).toBe(202)
      const { graph_id } = (await response.json()) as { graph_id: string }
      all.set(graph_id, known)
      // Answers may come too early, and to approvals of earlier rounds.
      const ids = [...all.keys()]
      for (const id of [graph_id, ids[random(ids.length)]!]) {
        const { waiting } = await recordOf(control, pathOf(id))
        if (waiting?.until !== undefined) seen(all.get(id)!, waiting.until)
        if (random(3) === 0) continue
        const verb = all.get(id)!.type === 'wait' ? 'signal' : random(2) === 0 ? 'approve' : 'reject'
        await answer(control, id, all.get(id)!, verb, `who ${random(1_000_000_000)}`)
      }
    }
  } catch (error) {
    // The service was killed in the middle of a call. Anything else is a fault.
    await exitOf(control)
    if (control.process.signalCode === null) throw error
    if (error instanceof Error && error.name !== 'TypeError' && !/ECONN|closed|reset|JSON/i.test(`${error}`))
      throw error
  }
}

/** An approval is asked for once: all records say the same. */
function seen(known: Known, time: string): void {
  known.until ??= time
  expect(time).toBe(known.until)
}

async function answer(control: Control, id: string, known: Known, verb: Verb, who: string) {
  known.sent.set(who, verb)
  const response = await control.fetch(`${pathOf(id)}/${verb}`, { method: 'POST', body: JSON.stringify({ who }) })
  await response.text()
  expect([200, 409]).toContain(response.status)
  if (response.status === 409) {
    known.sent.delete(who) // it was refused for good
    return
  }
  expect(known.acknowledged).toBeUndefined()
  known.acknowledged = who
}

/** What is wrong with the end of an approval, and of what depends on it. */
async function faultsOf(control: Control, graphId: string, known: Known): Promise<string[]> {
  const sure = await until(
    async () => {
      const record = await recordOf(control, pathOf(graphId))
      if (record.waiting?.until !== undefined) seen(known, record.waiting.until)
      const { reason } = record.waiting ?? {}
      if (reason === 'approval') await answer(control, graphId, known, 'approve', 'the end')
      if (reason === 'signal') await answer(control, graphId, known, 'signal', 'the end')
      return record
    },
    ({ status }) => isTerminal(status),
  )
  const next = await until(
    () => recordOf(control, pathOf(graphId, 'next')),
    ({ status }) => isTerminal(status),
  )
  const faults: string[] = []
  const { status, attempt, started_at = '', finished_at = '', runtime, resolved_input } = sure
  const given = (sure.result ?? undefined) as Partial<ApprovalResult> | undefined
  if (attempt !== 1) faults.push(`it has ${attempt} attempts`)
  if ((resolved_input as { message: string }).message !== known.message) faults.push('it asked something else')
  if (known.acknowledged !== undefined && given?.who !== known.acknowledged) faults.push('it lost its answer')
  if (given === undefined) {
    const tookMs = Date.parse(finished_at) - Date.parse(started_at)
    if (known.isUntil ? status !== 'success' : runtime?.error?.code !== 'timeout')
      faults.push(`it ended without an answer: ${sure.error}`)
    else if (known.timeout === undefined || tookMs < known.timeout) faults.push(`it timed out after ${tookMs} ms`)
  } else {
    const verb = known.sent.get(given.who!)
    const isGood = given.approved ?? true
    if (verb !== (known.type === 'wait' ? 'signal' : isGood ? 'approve' : 'reject'))
      faults.push(`nobody sent the answer of ${given.who}`)
    if (status !== (isGood ? 'success' : 'failed')) faults.push(`it is ${status}`)
  }
  const askedUntil = new Date(Date.parse(started_at) + (known.timeout ?? 0)).toISOString()
  if (known.until !== undefined && known.until !== askedUntil) faults.push(`it was asked for again: ${askedUntil}`)
  const expected = status === 'success' ? 'success' : 'skipped'
  if (next.status !== expected) faults.push(`what depends on it is ${next.status}`)
  return faults
}

test(
  `approvals keep their answers (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    const random = randomNumbers(SEED + 5)
    const all = new Map<string, Known>()
    const story = new CrashStory()
    const options = { dataDir: join(dir.path, 'data'), flags: ['--persist-interval', '20ms', '--max-concurrency', '2'] }
    for (let round = 0; round < ROUNDS; round++) {
      await using control = await startControl(options)
      story.follow(control)
      const clients = Array.from({ length: 3 }, () => client(control, all, random))
      await Bun.sleep(10 + random(150))
      // On a busy machine the first answers take longer than a round.
      await until(
        () => [all.size, [...all.values()].filter(({ acknowledged }) => acknowledged !== undefined).length],
        ([graphs, answered]) => graphs! > round + 1 && answered! > 0,
      )
      control.process.kill('SIGKILL')
      await control.process.exited
      await Promise.all(clients)
    }
    await using control = await startControl(options)
    story.follow(control)
    const faults = new Map<string, string[]>()
    for (const [graphId, known] of all) faults.set(graphId, await faultsOf(control, graphId, known))
    await story.noFaults(control, faults)
    expect(all.size).toBeGreaterThan(ROUNDS)
    expect([...all.values()].some(({ acknowledged }) => acknowledged !== undefined)).toBe(true)
  },
  limitOf(ROUNDS),
)
