/**
 * Kills control and the runtime service at random moments, one or both, and looks whether they kept their promises.
 *
 * A few clients submit graphs of local and runtime tasks, look, cancel and delete at random, all the while. Each round
 * ends one of the services or both, mostly by SIGKILL, and starts them again, in any order and with pauses in which the
 * other one has to do without. After the last round all is left to come to rest. Then both must tell the same about every
 * attempt (`support/agreement.ts`), none has run twice, nothing that a client was told has changed (`support/told.ts`),
 * and nothing is left: no reservation, no orphan, no process.
 */
import { expect, test } from 'bun:test'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { hasEnded } from '../../shared/contract/runtime-status.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { disagreements, partsOf } from '../support/agreement.ts'
import type { Control } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { lossyLink } from '../support/lossy-link.ts'
import { mixedGraph, type PlannedTask } from '../support/mixed-graph.ts'
import { countNotes } from '../support/notes.ts'
import { Pair, type PairOptions } from '../support/pair.ts'
import { type Random, randomNumbers, roundsOf, SEED } from '../support/random.ts'
import { noProcessesOf } from '../support/task-processes.ts'
import { Told } from '../support/told.ts'
import { until } from '../support/until.ts'

const ROUNDS = roundsOf({ usual: 20, nightly: 300 })

/** After so many rounds all must come to rest, and both begin anew: lists stay short, and a fault is near its cause. */
const ROUNDS_OF_A_PAIR = 20

const CLIENTS = 4
const OWNER = 'ada'

/** Of SIGTERM, and then KILL, as service managers do it. */
const TERM_PATIENCE_MS = 300

/** Milliseconds in which all must come to rest on a busy machine. */
const REST_MS = 120_000

/** Longer than most time limits of the tasks. */
const MAX_FREEZE_MS = 1_000

const FLAGS = {
  controlFlags: [
    ...['--kill-grace', '100ms', '--persist-interval', '20ms', '--shutdown-timeout', '50ms'],
    ...['--max-concurrency', '16'],
  ],
  // Not quite as many places: tasks wait there, and now and then one finds the queue full.
  runtimeFlags: ['--termination-grace-ms', '100', '--max-running-tasks', '10', '--max-queued-tasks', '5'],
  controlEnv: { SERVICE_SHELL_POLICY: 'open', SERVICE_RUNTIME_OWNER: OWNER },
}

class Trial {
  readonly #pair: Pair
  readonly #random: Random
  readonly #isPatient: boolean
  readonly #freezes: boolean
  readonly #told = new Told()
  readonly #planned = new Map<string, PlannedTask>()
  /** Services that were told to end. */
  readonly #ending = new WeakSet<object>()
  #clients: Promise<unknown> = Promise.resolve()
  /** Accepted tasks that do not end by themselves. */
  readonly #endless: string[] = []
  #graphs = 0
  #isOver = false

  constructor(pair: Pair, random: Random, { isPatient, freezes = false }: Circumstances) {
    this.#pair = pair
    this.#random = random
    this.#isPatient = isPatient
    this.#freezes = freezes
  }

  async run(rounds: number): Promise<void> {
    await this.#pair.startRuntime()
    await this.#startControl()
    for (let round = 0; round < rounds; round++) {
      await this.#pause(200)
      if (this.#freezes && this.#random(4) > 0) await this.#freeze()
      else await this.#mishap()
      await this.#goingThere((id) => this.#told.isLeftAlone(id)) // else they take all places, one after the other
    }
    await this.#pause(200)
    this.#isOver = true
    await this.#clients
    await this.#comeToRest()
  }

  /** One service ends or both, and what has ended is started again. */
  async #mishap(): Promise<void> {
    const random = this.#random
    const isBoth = random(2) === 0
    const [first, second] = random(2) === 0 ? (['control', 'runtime'] as const) : (['runtime', 'control'] as const)
    const ends = [this.#end(first)]
    if (isBoth) {
      await this.#pause(120)
      ends.push(this.#end(second))
    }
    await Promise.all(ends)
    const ended = isBoth ? [first, second] : [first]
    if (random(2) === 0) ended.reverse()
    for (const which of ended) {
      await this.#pause(150)
      if (which === 'control') await this.#startControl()
      else await this.#pair.startRuntime()
    }
  }

  /** Services are stopped for a while, as by a debugger or a machine that sleeps. They know nothing of it. */
  async #freeze(): Promise<void> {
    const which = this.#random(3)
    const services = [this.#pair.control, this.#pair.runtime].filter((_, i) => which !== i)
    for (const { process } of services) process.kill('SIGSTOP')
    await this.#pause(MAX_FREEZE_MS)
    for (const { process } of services) {
      process.kill('SIGCONT')
      await this.#pause(100)
    }
  }

  async #end(which: 'control' | 'runtime'): Promise<void> {
    const service = this.#pair[which]
    const { process } = service
    if (process.exitCode !== null || process.signalCode !== null) {
      throw new Error(`${which} ended by itself: ${process.exitCode} ${process.signalCode}`)
    }
    this.#ending.add(service)
    if (this.#random(4) === 0) {
      process.kill('SIGTERM')
      await Promise.race([process.exited, Bun.sleep(this.#random(TERM_PATIENCE_MS))])
    }
    if (which === 'control') await this.#pair.stopControl('SIGKILL')
    else await this.#pair.stopRuntime('SIGKILL')
    if (which === 'control') await this.#clients
  }

  async #startControl(): Promise<void> {
    const control = await this.#pair.startControl()
    await this.#told.check(control)
    const clients = Array.from({ length: CLIENTS }, () => this.#client(control))
    this.#clients = Promise.all(clients)
    this.#clients.catch(() => {}) // whoever waits for them is told
  }

  #pause(maxMs: number): Promise<void> {
    return Bun.sleep(this.#random(maxMs))
  }

  /** One client, until control is gone. */
  async #client(control: Control): Promise<void> {
    try {
      // One that an earlier control has started: this one may just be about to go on with it.
      const earlier = this.#endless.at(-1 - this.#random(8))
      if (earlier !== undefined) await this.#told.cancel(control, earlier)
      while (!this.#isOver) await this.#useOneGraph(control)
    } catch (error) {
      // Control was ended in the middle of a call. Anything else is a fault.
      const isCutOff = systemCodeOf(error) !== undefined || error instanceof SyntaxError
      if (!isCutOff || !this.#ending.has(control)) throw error
    }
  }

  async #useOneGraph(control: Control): Promise<void> {
    const random = this.#random
    const name = `g${this.#graphs++}`
    const notes = { local: this.#pair.file('local'), runtime: this.#pair.file('runtime-runs') }
    const { tasks, planned } = mixedGraph(random, name, notes)
    for (const plan of planned) this.#planned.set(plan.id, plan)
    const response = await control.post({ tasks })
    if (response.status === 503) {
      this.#told.refused(name)
      await response.body?.cancel()
      await Bun.sleep(5) // it is stopping
      return
    }
    expect(response.status).toBe(202)
    const { task_ids } = (await response.json()) as SubmitResponse
    this.#told.accepted(task_ids)
    for (let looks = random(3); looks > 0; looks--) {
      await this.#told.look(control, task_ids[random(task_ids.length)]!, random(120))
    }
    // Rather one that runs: whether it is ended shows only where nothing else ends it.
    const endless = planned.filter(({ end }) => end.kind === 'endless').map(({ id }) => id)
    this.#endless.push(...endless)
    const id = endless[random(4)] ?? task_ids[random(task_ids.length)]!
    const next = random(16)
    if (next < 8) await this.#told.cancel(control, id)
    if (next >= 6 && next < 10) await this.#told.delete(control, id)
    await this.#told.look(control, task_ids.at(-1)!, random(250))
  }

  async #comeToRest(): Promise<void> {
    const { control, runtime } = this.#pair
    await until(
      async () => (await control.list()).filter(({ status }) => !isTerminal(status)).map(({ id }) => id),
      (going) => going.length === 0,
      { patienceMs: REST_MS },
    )
    await until(
      () => this.#goingThere((id) => this.#told.mayBeLeftAlone(id)),
      (going) => going.length === 0,
      { patienceMs: REST_MS },
    )
    const there = await runtime.list()
    const here = await this.#told.check(control)
    const byHandle = new Map(there.map((task) => [task.task_id, task]))
    const byId = new Map(here.map((record) => [record.id, record]))
    const sides = { planned: this.#planned, here: byId, there: byHandle, isPatient: this.#isPatient }
    expect(disagreements(sides)).toEqual([])

    const runs = this.#pair.lines('runtime-runs').map((mark) => mark.slice(mark.indexOf(':') + 1))
    expect(twice(runs), 'attempts that ran twice').toEqual([])
    expect(twice(this.#pair.lines('local')), 'local attempts that ran twice').toEqual([])
    // Control has the runtime service remove what its clients delete.
    expect(
      runs.filter((handle) => !byHandle.has(handle) && !this.#told.wasUnwanted(partsOf(handle).id)),
      'ran, but unknown',
    ).toEqual([])
    const ran = new Set(runs)
    const exited = there.filter(({ exit_code, status }) => exit_code !== undefined && status !== 'cancelled')
    expect(
      exited.filter(({ task_id }) => !ran.has(task_id)).map(({ task_id }) => task_id),
      'exited, but never ran',
    ).toEqual([])
    await this.#pair.isQuiet()
    const { reserved } = await runtime.resources()
    expect(reserved).toEqual({ task_slots: 0, memory_bytes: 0, pids: 0 })
    await until(
      () => countNotes(control.dataDir, 'orphan'),
      (orphans) => orphans === 0,
      { patienceMs: REST_MS },
    )
    await this.#pair.stopControl('SIGTERM')
    await this.#pair.stopRuntime('SIGTERM')
    await noProcessesOf(this.#pair.file('.'))
    expect(ran.size).toBeGreaterThan(20)
    expect(this.#told.endsSeen).toBeGreaterThan(20)
  }

  /** Tasks of the runtime service that have not ended. Endless ones that `isLeftAlone` says are killed. */
  async #goingThere(isLeftAlone: (id: string) => boolean): Promise<string[]> {
    const { runtime } = this.#pair
    const going = (await runtime.list()).filter(({ status }) => !hasEnded(status))
    for (const { task_id } of going) {
      const { id } = partsOf(task_id)
      if (this.#planned.get(id)?.end.kind !== 'endless' || !isLeftAlone(id)) continue
      await (await runtime.kill(task_id, { 'x-service-owner': OWNER })).text()
    }
    return going.map(({ task_id, status }) => `${task_id} is ${status}, ${this.#told.about(partsOf(task_id).id)}`)
  }
}

const twice = (all: readonly string[]): string[] => all.filter((one, i) => all.indexOf(one) !== i)

interface Circumstances {
  readonly options: PairOptions
  readonly port: number
  readonly isPatient: boolean
  /** Most mishaps stop services for a while. */
  readonly freezes?: boolean
}

async function killAndCheck(
  rounds: number,
  random: Random,
  circumstances: () => Promise<Circumstances>,
): Promise<void> {
  for (let left = rounds; left > 0; left -= ROUNDS_OF_A_PAIR) {
    const found = await circumstances()
    await using pair = new Pair(found.port, found.options)
    await new Trial(pair, random, found).run(Math.min(left, ROUNDS_OF_A_PAIR))
  }
}

test(
  `both services agree, whichever is killed (${ROUNDS} rounds, seed ${SEED})`,
  async () => {
    const random = randomNumbers(SEED)
    await killAndCheck(ROUNDS, random, async () => ({ options: FLAGS, port: await freePort(), isPatient: true }))
  },
  60 * 60_000,
)

const FROZEN_ROUNDS = roundsOf({ usual: 20, nightly: 300 })

test(
  `also when they are stopped (SIGSTOP) for a while (${FROZEN_ROUNDS} rounds, seed ${SEED})`,
  async () => {
    const random = randomNumbers(SEED + 2)
    const circumstances = async () => ({ options: FLAGS, port: await freePort(), isPatient: true, freezes: true })
    await killAndCheck(FROZEN_ROUNDS, random, circumstances)
  },
  60 * 60_000,
)

/** One in so many answers of the runtime service is lost. */
const LOST_ANSWERS = 12

const LOSSY_ROUNDS = roundsOf({ usual: 10, nightly: 300 })

test(
  `also when answers are lost and control is impatient (${LOSSY_ROUNDS} rounds, seed ${SEED})`,
  async () => {
    const random = randomNumbers(SEED + 1)
    let target = ''
    await using link = lossyLink(() => target)
    link.loseAnswers(() => random(LOST_ANSWERS) === 0)
    await killAndCheck(LOSSY_ROUNDS, random, async () => {
      const port = await freePort()
      target = `http://127.0.0.1:${port}`
      const controlFlags = [...FLAGS.controlFlags, '--runtime-away-timeout', '100ms']
      return { options: { ...FLAGS, controlFlags, runtimeUrl: () => link.url }, port, isPatient: false }
    })
  },
  60 * 60_000,
)
