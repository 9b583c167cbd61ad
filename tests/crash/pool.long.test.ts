/**
 * Kills control and its runtime services at random moments, while tasks run at places of their own.
 *
 * Clients submit graphs, some of whose tasks ask for a runtime service by its name or its label, look, cancel and delete.
 * Each round kills control, one runtime service, or control and one or two of them, and starts them again in any order.
 * In the end all must come to rest (`support/workload.ts`): no attempt has started twice, at one place or at two, control
 * and the runtime services tell the same, and nothing stays reserved.
 */
import { test } from 'bun:test'
import { countNotes } from '../support/notes.ts'
import { PatientClient } from '../support/patient-client.ts'
import { type Random, randomNumbers, roundsOf, SEED } from '../support/random.ts'
import { StartedPool } from '../support/runtime-pool.ts'
import { noProcessesOf } from '../support/task-processes.ts'
import { Workload } from '../support/workload.ts'

const ROUNDS = roundsOf({ usual: 20, nightly: 300 })

/** After so many rounds all must come to rest, and all begin anew: lists stay short, and a fault is near its cause. */
const ROUNDS_OF_A_POOL = 20

const CLIENTS = 3

const FLAGS = ['--termination-grace-ms', '100', '--max-running-tasks', '5', '--max-queued-tasks', '3']
const MEMBERS = {
  one: { labels: 'place=one', flags: FLAGS },
  two: { labels: 'place=two', flags: FLAGS },
  three: { flags: FLAGS },
} as const
const NAMES = Object.keys(MEMBERS) as (keyof typeof MEMBERS)[]
const PLACEMENTS = [{ runtime: 'one' }, { runtime: 'three' }, { labels: { place: 'two' } }]

const CONTROL_FLAGS = ['--kill-grace', '100ms', '--persist-interval', '20ms', '--max-concurrency', '16']
const ENV = { SERVICE_SHELL_POLICY: 'open' }

/** One service or several end, and those that have ended are started again. */
async function mishap(pool: StartedPool, random: Random): Promise<void> {
  const isControl = random(2) === 0
  const first = random(NAMES.length)
  const ended = NAMES.filter(
    (_, i) => i === first || (isControl && i === (first + 1) % NAMES.length && random(2) === 0),
  )
  const runtimes = isControl && random(3) === 0 ? [] : ended
  const signal = () => (random(5) === 0 ? 'SIGTERM' : 'SIGKILL')
  const ends = [
    ...(isControl ? [() => pool.killControl(signal())] : []),
    ...runtimes.map((name) => () => pool.killRuntime(name, signal())),
  ]
  const starts = [
    ...(isControl ? [() => pool.startControl(CONTROL_FLAGS, ENV)] : []),
    ...runtimes.map((name) => () => pool.startRuntime(name)),
  ]
  for (const steps of [ends, starts]) {
    if (random(2) === 0) steps.reverse()
    for (const step of steps) {
      await Bun.sleep(random(120))
      await step()
    }
  }
}

async function killAndCheck(rounds: number, random: Random): Promise<void> {
  await using pool = new StartedPool(MEMBERS)
  await pool.takePorts()
  for (const name of NAMES) await pool.startRuntime(name)
  await pool.startControl(CONTROL_FLAGS, ENV)
  const control = new PatientClient(() => [pool.control.url], random)
  const workload = new Workload(
    {
      ...{ control, placements: PLACEMENTS, runtimes: () => NAMES.map((name) => pool.runtime(name)) },
      ...{ file: (name) => pool.file(name), lines: (name) => pool.lines(name) },
      orphans: () => countNotes(pool.control.dataDir, 'orphan'),
    },
    random,
  )
  try {
    workload.start(CLIENTS)
    for (let round = 0; round < rounds; round++) {
      await Bun.sleep(random(250))
      await mishap(pool, random)
    }
    await workload.stop()
    await workload.comeToRest()
  } finally {
    control.stop()
  }
  await pool.killControl('SIGTERM')
  for (const name of NAMES) await pool.killRuntime(name, 'SIGTERM')
  await noProcessesOf(pool.file('.'))
}

test(
  `no attempt starts at two places, and nothing stays reserved, whichever is killed (${ROUNDS} rounds, seed ${SEED})`,
  async () => {
    const random = randomNumbers(SEED)
    for (let left = ROUNDS; left > 0; left -= ROUNDS_OF_A_POOL) {
      await killAndCheck(Math.min(left, ROUNDS_OF_A_POOL), random)
    }
  },
  60 * 60_000,
)
