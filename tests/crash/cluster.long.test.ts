/**
 * Kills, freezes and cuts off whatever can die in a cluster, and looks whether it kept its promises.
 *
 * Each round has three replicas of control, two runtime services, and a PostgreSQL with a synchronous standby. Clients
 * submit, look, cancel and delete all the while; others submit graphs that share limits (`support/group-clients.ts`), pause, resume,
 * retry and patch graphs (`support/changed-graphs.ts`), and schedules submit each second (`support/schedule-clients.ts`). In the
 * order that the seed says, a replica is killed, one is stopped for longer than the lease, one loses its database for as long,
 * statements are cut off before, around and after their commit, a runtime service is killed, and the database has a mishap of its own. Three kinds of rounds take turns: replicas that know
 * the standby, which is promoted when the primary is killed; replicas behind PgBouncer, whose database is killed and comes
 * back; and a database that is killed or frozen, or whose standby is away for a while. Then all must come to rest
 * (`support/workload.ts`), a client that followed the events must have been told nothing twice, each replica that has ended
 * must have had a reason, and no row may be left.
 *
 * A round has a seed of its own, which its failure names: `make crash-cluster SEED=N ROUNDS=1` repeats it.
 */
import { describe, expect, test } from 'bun:test'
import { ChangedGraphs } from '../support/changed-graphs.ts'
import { Cluster } from '../support/cluster.ts'
import type { Cut } from '../support/cutting-link.ts'
import { EventFollower } from '../support/event-follower.ts'
import { GroupClients } from '../support/group-clients.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { PatientClient } from '../support/patient-client.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { type Random, randomNumbers, roundsOf, SEED } from '../support/random.ts'
import { ScheduleClients } from '../support/schedule-clients.ts'
import { noProcessesOf } from '../support/task-processes.ts'
import { until } from '../support/until.ts'
import { Workload } from '../support/workload.ts'

const missing = mustPostgres()

const ROUNDS = roundsOf({ usual: 3, nightly: 300 })

const LEASE_MS = 2_500
const CLIENTS = 3

/** Milliseconds for a start on a busy machine, where the database may answer too late for so short a lease. */
const START_MS = 120_000

const KINDS = ['failover', 'pooled', 'alone'] as const
type Kind = (typeof KINDS)[number]

const CUTS: readonly Cut[] = ['before the request', 'before the commit', 'around the commit', 'before the answer']

/** Of graphs, with the column that says which. Answers to idempotency keys, replicas and past events stay for their time. */
const TABLES = { frame: 'graph', task_id: 'graph', result: 'graph' }

class Round {
  readonly #cluster: Cluster
  readonly #random: Random
  readonly #kind: Kind
  readonly #primary: Postgres
  #cuts = 0

  constructor(cluster: Cluster, random: Random, kind: Kind, primary: Postgres) {
    this.#cluster = cluster
    this.#random = random
    this.#kind = kind
    this.#primary = primary
  }

  async run(): Promise<void> {
    await until(
      () => this.#cluster.accepting(),
      (accepting) => accepting.length > 0,
      { patienceMs: START_MS },
    )
    const mishaps = [
      () => this.#killReplica(),
      () => this.#freezeReplica(),
      () => this.#cutOffReplica(),
      () => this.#cutStatements(),
      () => this.#killRuntime(),
      () => this.#databaseMishap(),
    ]
    for (let left = mishaps.length; left > 0; left--) {
      const [mishap] = mishaps.splice(this.#random(left), 1)
      await this.#pause(400)
      await mishap!()
    }
    await this.#pause(400)
    expect(this.#cuts, 'cut connections').toBeGreaterThan(0)
  }

  #pause(maxMs: number): Promise<void> {
    return Bun.sleep(this.#random(maxMs))
  }

  /** Rather one that accepts graphs: the others may have nothing to lose. */
  async #anyReplica(): Promise<number> {
    const any = this.#random(this.#cluster.replicas.length)
    const accepting = this.#random(4) > 0 ? await this.#cluster.accepting() : []
    return accepting[any % Math.max(1, accepting.length)] ?? any
  }

  async #killReplica(): Promise<void> {
    const replica = this.#cluster.replicas[await this.#anyReplica()]!
    await replica.end(this.#random(4) === 0 ? 'SIGTERM' : 'SIGKILL')
    await this.#pause(LEASE_MS)
    await replica.start()
  }

  async #freezeReplica(): Promise<void> {
    const replica = this.#cluster.replicas[await this.#anyReplica()]!
    replica.freeze()
    await Bun.sleep(LEASE_MS + this.#random(LEASE_MS))
    replica.thaw()
  }

  /** Nothing passes between a replica and the database; what was sent meanwhile arrives late. */
  async #cutOffReplica(): Promise<void> {
    const links = this.#cluster.links[await this.#anyReplica()]!
    for (const link of links) link.hold()
    await Bun.sleep(LEASE_MS + this.#random(LEASE_MS / 2))
    for (const link of links) link.release()
  }

  async #cutStatements(): Promise<void> {
    for (let left = 6; left > 0; left--) {
      const links = this.#cluster.links[await this.#anyReplica()]!
      for (const link of links) link.cut(CUTS[this.#random(CUTS.length)]!)
      await this.#pause(300)
    }
    const count = () => this.#cluster.links.flat().reduce((sum, { cuts }) => sum + cuts, 0)
    this.#cuts = await until(count, (cuts) => cuts > 0)
  }

  async #killRuntime(): Promise<void> {
    const start = await this.#cluster.killRuntime(this.#random(2))
    await this.#pause(1_000)
    await start()
  }

  async #databaseMishap(): Promise<void> {
    const standby = this.#primary.standby!
    if (this.#kind === 'failover') {
      await this.#primary.kill()
      await this.#pause(500)
      await standby.promote()
      return
    }
    const what = this.#kind === 'pooled' ? 0 : this.#random(3)
    if (what === 0) {
      await this.#primary.kill()
      await this.#pause(1_500)
      await this.#primary.start()
    } else if (what === 1) {
      this.#primary.freeze()
      await this.#pause(LEASE_MS)
      this.#primary.thaw()
    } else {
      await standby.kill()
      await this.#pause(LEASE_MS)
      await standby.start()
    }
  }
}

/** The rows of whichever server is the primary. */
async function rowsIn(table: 'orphan' | 'place', servers: readonly Postgres[], database: string): Promise<number> {
  for (const server of servers) {
    const query = `select count(*)::int as count from taskmill.${table}`
    const rows = await server.run(query, database).catch(() => undefined)
    if (rows !== undefined) return Number(rows[0]!.count)
  }
  return Number.POSITIVE_INFINITY
}

async function playRound(seed: number): Promise<string> {
  const random = randomNumbers(seed)
  const kind = KINDS[seed % KINDS.length]!
  await using primary = await startPostgres({ standby: true })
  const database = await primary.createDatabase()
  const servers = kind === 'failover' ? [primary, primary.standby!] : [primary]
  await using cluster = await Cluster.start({ servers, database, isPooled: kind === 'pooled', leaseMs: LEASE_MS })
  const control = new PatientClient(() => cluster.replicas.map(({ url }) => url), random)
  const workload = new Workload(
    {
      ...{ control, placements: cluster.placements, runtimes: () => cluster.runtimes },
      ...{ file: (name) => cluster.file(name), lines: (name) => cluster.lines(name) },
      orphans: () => rowsIn('orphan', servers, database),
    },
    random,
  )
  const groups = new GroupClients(control, () => rowsIn('place', servers, database), randomNumbers(seed))
  const lines = () => cluster.lines('changed')
  const changed = new ChangedGraphs(control, cluster.file('changed'), lines, randomNumbers(seed))
  const schedules = new ScheduleClients(control, randomNumbers(seed))
  const follower = new EventFollower(() => cluster.replicas.map(({ url }) => url), randomNumbers(seed))
  try {
    workload.start(CLIENTS)
    groups.start()
    changed.start(CLIENTS)
    schedules.start()
    await new Round(cluster, random, kind, primary).run()
    await Promise.all([workload.stop(), groups.stop(), changed.stop(), schedules.stop()])
    await schedules.comeToRest()
    await groups.comeToRest()
    await changed.comeToRest()
    await workload.comeToRest()
    await follower.stop()
    expect(follower.faults).toEqual([])
    expect(follower.heard).toBeGreaterThan(0)
  } catch (error) {
    control.stop()
    await follower.stop()
    process.stderr.write(`${await cluster.lastLines()}\n`)
    throw error
  }
  expect(cluster.replicas.flatMap(({ faults }) => faults)).toEqual([])
  for (const replica of cluster.replicas) await replica.end('SIGTERM')
  for (const runtime of cluster.runtimes) await runtime.stop('SIGTERM')
  await noProcessesOf(cluster.file('.'))
  expect(cluster.replicas.flatMap(({ faults }) => faults)).toEqual([])
  const server = kind === 'failover' ? primary.standby! : primary
  expect(await rowsLeft(server, database, (id) => workload.wasUnwanted(id)), 'rows left').toEqual([])
  const { graphs, runs } = workload.counts
  const { accepted, refused } = groups.counts
  const ends = cluster.replicas.flatMap(({ ownEnds }) => ownEnds)
  return `${kind}: ${graphs} graphs, ${runs} attempts at runtime services, ${accepted} graphs of groups and ${refused} refused ones, ${schedules.graphs} of schedules, ${JSON.stringify(changed.counts)} changed ones, replicas that ended by themselves: ${ends.join(', ') || 'none'}`
}

/**
 * What is left in the database after all graphs were deleted. Not counted are graphs whose tasks were deleted one by one:
 * those that end under a replica stay until another one finds them.
 */
async function rowsLeft(server: Postgres, database: string, wasUnwanted: (id: string) => boolean): Promise<object[]> {
  const graphs = await server.run('select ordinal, payload from taskmill.graph', database)
  const isEmptied = ({ payload }: Record<string, unknown>) =>
    (JSON.parse(`${payload}`) as { body: { tasks: { id: string }[] } }).body.tasks.every(({ id }) => wasUnwanted(id))
  const left: object[] = graphs.filter((graph) => !isEmptied(graph))
  for (const [table, column] of Object.entries(TABLES)) {
    const none = `not exists (select from taskmill.graph where ordinal = ${column})`
    left.push(...(await server.run(`select '${table}' as of, * from taskmill.${table} where ${none}`, database)))
  }
  return left
}

describe.skipIf(missing !== undefined)(missing === undefined ? 'cluster' : `cluster (skipped: ${missing})`, () => {
  test(
    `nothing that a cluster has acknowledged is lost, run twice or told twice (${ROUNDS} rounds, seed ${SEED})`,
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const seed = SEED + round
        const startedAt = performance.now()
        try {
          const done = await playRound(seed)
          const seconds = Math.round((performance.now() - startedAt) / 1_000)
          process.stderr.write(`round ${round + 1} of seed ${seed}, ${seconds} s: ${done}\n`)
        } catch (error) {
          throw new Error(`this round failed; repeat it with: make crash-cluster SEED=${seed} ROUNDS=1`, {
            cause: error,
          })
        }
      }
    },
    (ROUNDS + 1) * 300_000,
  )
})
