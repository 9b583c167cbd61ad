/**
 * Gives a control service under test a database instead of the files in its data directory.
 *
 * With `TASKMILL_TEST_DATABASE`, the address of a PostgreSQL and its superuser, each data directory stands for a database of
 * that server: a service that is started again with its data directory finds its graphs. A database whose data directory
 * is gone is emptied and used again, because PostgreSQL takes a third of a second to make one.
 *
 * `run-on-database.ts` sets the variable.
 */
import { expect } from 'bun:test'
import { resolve } from 'node:path'
import { SQL } from 'bun'
import { until } from './until.ts'

const SERVER = process.env.TASKMILL_TEST_DATABASE ?? ''

/** Longer than a busy machine keeps a service waiting. */
const LEASE = '30s'

/** Whether services under test have a database. */
export const hasDatabase = SERVER !== ''

/** What `GET /health` has in addition with a database. */
export const replicaMember = !hasDatabase ? {} : { replica: expect.any(Object) }

/** Databases that no data directory needs any more. */
const free: string[] = []

/** Databases by data directory. */
const inUse = new Map<string, string>()

/** Flags with which control keeps its work in a database, for the data directory `dataDir`. */
export async function databaseFlags(dataDir: string, flags: readonly string[]): Promise<string[]> {
  if (!hasDatabase || flags.some((flag) => flag.startsWith('--database'))) return []
  const path = resolve(dataDir)
  const known = inUse.get(path)
  if (known !== undefined) await endLease(known)
  const name = known ?? free.pop() ?? (await newDatabase())
  inUse.set(path, name)
  return ['--database', addressOf(name), '--lease', LEASE]
}

/**
 * Waits until the service at `url` has the graphs that its data directory stands for: it answers before. One that asks for
 * a token cannot be asked here.
 */
export async function recoveredFrom(dataDir: string, url: string): Promise<void> {
  const name = inUse.get(resolve(dataDir))
  if (name === undefined) return
  await until(
    async () => {
      const [{ orphans, graphs }] = (await run(GRAPHS, addressOf(name))) as [{ orphans: number; graphs: number }]
      const health = await fetch(`${url}/health`).then(
        async (response) => (await response.json()) as { replica?: { graphs: number } },
        () => ({ replica: undefined }),
      )
      return orphans === 0 && (health.replica === undefined || health.replica.graphs >= graphs)
    },
    (isSo) => isSo,
  )
}

/** All graphs, and those of replicas that are gone. */
const GRAPHS = `
  select count(*)::int as graphs, count(*) filter (where not exists (
    select from taskmill.replica r where r.id = g.owner and r.state = 'live'))::int as orphans
  from taskmill.graph g`

/** A killed service leaves its lease, which no start should wait for. */
async function endLease(name: string): Promise<void> {
  await run(`update taskmill.replica set state = 'dead', epoch = epoch + 1 where state = 'live'`, addressOf(name))
}

/** To be called once `dataDir` is gone. */
export async function releaseDatabase(dataDir: string): Promise<void> {
  const path = resolve(dataDir)
  const name = inUse.get(path)
  if (name === undefined) return
  inUse.delete(path)
  await run('drop schema if exists taskmill cascade', addressOf(name))
  free.push(name)
}

async function newDatabase(): Promise<string> {
  const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
  await run(`create database ${name} template template0`, SERVER)
  return name
}

function addressOf(database: string): string {
  const url = new URL(SERVER)
  url.pathname = `/${database}`
  return url.href
}

async function run(statement: string, address: string): Promise<readonly unknown[]> {
  const database = new URL(address).pathname.slice(1)
  const sql = new SQL(address, { database, max: 1 }) // PGDATABASE would beat the one in the address
  try {
    return [...(await sql.unsafe(statement))]
  } finally {
    await sql.close({ timeout: 0 })
  }
}
