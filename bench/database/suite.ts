/** Control with a database, compared with control without one. */
import type { BenchConfig } from '../config.ts'
import { submit } from '../control/submit.ts'
import type { Lifetime } from '../lifetime.ts'
import type { Goal } from '../measure.ts'
import { FLOOR } from '../report.ts'
import { commandTarget, copiedProgram, quoted, type ServerKind } from '../server.ts'
import { suiteOf } from '../suite.ts'
import { startDatabaseServer } from './server.ts'
import { type DatabaseSizes, type DatabaseTarget, FULL, LEASE_MS, QUICK, takeover } from './takeover.ts'

const KIND: ServerKind = { healthPath: '/health', fill: {} }

/** With all of it on the same two cores. */
const GOALS: Readonly<Record<string, Goal>> = {
  submit_8_rate: { timesFloor: 0.45 },
  submit_32_rate: { timesFloor: 0.35 },
}

const withGoals: typeof submit = {
  ...submit,
  measures: (sizes) =>
    submit.measures(sizes).map((measure) => {
      const goal = GOALS[measure.key]
      return goal === undefined ? measure : { ...measure, goal }
    }),
}

export const database = suiteOf<DatabaseTarget, DatabaseSizes>({
  name: 'database',
  full: FULL,
  quick: QUICK,
  roundsMs: 150_000,
  prepare,
  workloads: [withGoals, takeover],
  isClosed: true,
})

async function prepare(_config: BenchConfig, lifetime: Lifetime): Promise<DatabaseTarget[]> {
  const ours = quoted(await copiedProgram('taskmill-control', lifetime))
  const command = `${ours} --addr 127.0.0.1:{port} --data-dir {dir}`
  const embedded = commandTarget(FLOOR, command, KIND, lifetime)
  const server = await startDatabaseServer(lifetime)
  if (server === undefined) {
    console.error('database: PostgreSQL is not installed, so there is only the floor')
    return [embedded]
  }
  const shared = `${command} --database {database} --lease ${LEASE_MS}ms`
  const replica = commandTarget('control+database', shared, KIND, lifetime)
  const { newDatabase } = server
  return [
    {
      ...replica,
      start: async (options) => replica.start({ ...options, fill: { database: await newDatabase() } }),
      async startTwo() {
        const fill = { database: await newDatabase() }
        const first = await replica.start({ fill })
        return { first, second: replica.start({ fill }) }
      },
    },
    embedded,
  ]
}
