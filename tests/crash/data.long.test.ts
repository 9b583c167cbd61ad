/**
 * Kills the services at random moments while graphs hand values and secrets on: a reference is resolved once, a restart sees
 * the same value, and no kill leaves the value of a secret on disk.
 *
 * Each round starts control, and sometimes the runtime service, on the directory of the round before. Clients submit graphs
 * until SIGKILL. A source prints random bytes, little or much. Its copies note what they get in each of several attempts;
 * sometimes the source is deleted meanwhile. Other tasks note the hash of a secret, which is another one in each round. At
 * the end all notes of a copy must be the same, and be what the records say; each secret must be one of those that there
 * were, and none may be found in a file.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { Control } from '../support/control.ts'
import { CrashStory } from '../support/crash-story.ts'
import { filesWith } from '../support/files-below.ts'
import { startPair } from '../support/pair.ts'
import { limitOf, type Random, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { exitOf } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const hashOf = (text: string): string => new Bun.CryptoHasher('sha256').update(text).digest('hex')

/** Attempts of a copy before one succeeds. */
const FAILING_ATTEMPTS = 2
const FAILS_AT_FIRST = `[ "\${TASKMILL_ATTEMPT##*/}" -gt ${FAILING_ATTEMPTS} ]`
const RETRIES = { retry: 100, backoff: { initial_ms: 5, factor: 1 } }

interface Acknowledged {
  readonly name: string
  /** The source may be deleted at any moment. */
  readonly isSourceDeleted: boolean
}

/** A graph whose notes begin with `name`. */
function graph(name: string, bytes: number, notes: string): object[] {
  const source = {
    id: 'source',
    type: 'shell',
    params: { script: `head -c ${bytes} /dev/urandom | od -An -v -tx1` },
    ...RETRIES,
  }
  const noted = `sha256sum | { read hash _; echo "${name}.$1 $hash" >> ${notes}; }; ${FAILS_AT_FIRST}`
  const copies = ['one', 'two'].map((id) => ({
    ...{ id, type: 'shell', depends_on: ['source'], ...RETRIES },
    params: { script: noted, args: [id], stdin: { $from: 'source', path: '/result/stdout' } },
  }))
  const note = (id: string, input: string) =>
    `printf %s "${input}" | sha256sum | { read hash _; echo "${name}.${id} $hash" >> ${notes}; }`
  return [
    source,
    ...copies,
    {
      id: 'variable',
      type: 'shell',
      secrets: { S: 'rotating' },
      params: { script: note('variable', '$S') },
      ...RETRIES,
    },
    {
      ...{ id: 'file', type: 'runtime.script', secrets: { S: { name: 'rotating', file: 'd/s' } }, ...RETRIES },
      params: { script: `sleep 0.0${bytes % 10}; ${note('file', '$(cat d/s)')}` },
    },
  ]
}

/** One client, until the service is gone. */
async function client(
  control: Control,
  known: Map<string, Acknowledged>,
  random: Random,
  notes: string,
): Promise<void> {
  try {
    for (;;) {
      const name = `g${random(1e9)}`
      const bytes = random(3) === 0 ? 30_000 : 8
      const response = await control.post({ tasks: graph(name, bytes, notes), scope: 'graph' })
      expect(response.status).toBe(202)
      const { graph_id } = (await response.json()) as { graph_id: string }
      const isSourceDeleted = random(4) === 0
      known.set(graph_id, { name, isSourceDeleted })
      await control.fetch(`/graphs/${graph_id}?wait_ms=${random(200)}`)
      if (isSourceDeleted) await control.fetch(`/graphs/${graph_id}/tasks/source`, { method: 'DELETE' })
    }
  } catch (error) {
    // The service was killed in the middle of a call. Anything else is a fault.
    await exitOf(control)
    if (control.process.signalCode === null) throw error
    if (error instanceof Error && error.name !== 'TypeError' && !/ECONN|closed|reset|JSON/i.test(`${error}`))
      throw error
  }
}

/** What the tasks of all graphs noted, by graph and task, without repetitions. */
function notesIn(path: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const line of readFileSync(path, 'utf8').split('\n').slice(0, -1)) {
    const [task, hash] = line.split(' ') as [string, string]
    found.set(task, (found.get(task) ?? new Set()).add(hash))
  }
  return found
}

async function faultsOf(
  control: Control,
  graphId: string,
  { name, isSourceDeleted }: Acknowledged,
  { notes, hashes }: { readonly notes: Map<string, Set<string>>; readonly hashes: ReadonlySet<string> },
): Promise<string[]> {
  let graph: GraphDetails
  do graph = (await (await control.fetch(`/graphs/${graphId}?wait_ms=20000`)).json()) as GraphDetails
  while (graph.state === 'running')
  const records = (await (await control.fetch(`/graphs/${graphId}/tasks`)).json()) as TaskRecord[]
  const byId = new Map(records.map((record) => [record.id, record]))
  const source = byId.get('source')?.result as { stdout: string } | undefined
  const faults: string[] = []
  for (const id of ['one', 'two']) {
    const { status, error, resolved_input } = byId.get(id)!
    const noted = [...(notes.get(`${name}.${id}`) ?? [])]
    if (noted.length > 1) faults.push(`${id} got several values: ${noted}`)
    const isLost = isSourceDeleted && (status === 'skipped' || /which was deleted/.test(error ?? ''))
    if (status !== 'success' && !isLost) faults.push(`${id} is ${status}: ${error}`)
    if (status !== 'success') continue
    if (source !== undefined && noted[0] !== hashOf(source.stdout))
      faults.push(`${id} got another value than source has`)
    const { stdin } = resolved_input as { stdin?: string }
    if (stdin !== undefined && noted[0] !== hashOf(stdin)) faults.push(`${id} got another value than its record says`)
  }
  for (const id of ['variable', 'file']) {
    const { status, error } = byId.get(id)!
    const noted = [...(notes.get(`${name}.${id}`) ?? [])]
    if (status !== 'success') faults.push(`${id} is ${status}: ${error}`)
    if (noted.length === 0 || noted.some((hash) => !hashes.has(hash))) faults.push(`${id} got no secret: ${noted}`)
  }
  return faults
}

const filesWithAny = (top: string, values: readonly string[]): string[] =>
  filesWith(top, (content) => values.some((value) => content.includes(value)))

test(
  `values are handed on once, and secrets stay off the disk (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using outside = tempDir()
    const secrets = join(outside.path, 'secrets')
    mkdirSync(secrets, { mode: 0o700 })
    const values: string[] = []
    const rotate = () => {
      values.push(`s3cr3t-${crypto.randomUUID()}`)
      writeFileSync(join(secrets, 'new'), values.at(-1)!, { mode: 0o600 })
      renameSync(join(secrets, 'new'), join(secrets, 'rotating'))
    }
    rotate()
    const random = randomNumbers(SEED + 3)
    const known = new Map<string, Acknowledged>()
    const flags = ['--secrets-dir', secrets]
    await using pair = await startPair({
      controlFlags: [...flags, '--kill-grace', '100ms', '--persist-interval', '20ms', '--max-concurrency', '8'],
      runtimeFlags: flags,
      controlEnv: { SERVICE_SHELL_POLICY: 'open' },
    })
    const story = new CrashStory()
    const notes = join(outside.path, 'notes')
    writeFileSync(notes, '')
    for (let round = 0; round < ROUNDS; round++) {
      const { control } = pair
      story.follow(control)
      const clients = Array.from({ length: 2 }, () => client(control, known, random, notes))
      await Bun.sleep(50 + random(300))
      // On a busy machine the first answers take longer than a round.
      await until(
        () => known.size,
        (graphs) => graphs > round + 1,
      )
      control.process.kill('SIGKILL')
      await control.process.exited
      await Promise.all(clients)
      if (random(2) === 0) {
        await pair.stopRuntime('SIGKILL')
        await pair.startRuntime()
      }
      rotate()
      await pair.startControl()
    }
    story.follow(pair.control)
    const faults = new Map<string, string[]>()
    const hashes = new Set(values.map(hashOf))
    for (const graphId of known.keys()) await pair.control.fetch(`/graphs/${graphId}?wait_ms=60000`)
    const noted = { notes: notesIn(notes), hashes }
    for (const [graphId, acknowledged] of known)
      faults.set(graphId, await faultsOf(pair.control, graphId, acknowledged, noted))
    await story.noFaults(pair.control, faults)
    await pair.isQuiet()
    expect(filesWithAny(pair.file(''), values)).toEqual([])
    expect(known.size).toBeGreaterThan(ROUNDS)
  },
  limitOf(ROUNDS),
)
