/** The end of a bench leaves nothing behind. Method: a real process of it, whose child still writes when it is killed. */
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { allPids, isZombie, processStat } from '../../shared/process/processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const LIFETIME = join(import.meta.dir, '../../bench/lifetime.ts')

/** A child that makes one file after the other, and is scheduled only when nothing else wants a core. */
const WRITER = 'chrt --idle 0 sh -c \'while :; do i=$((i+1)); : > "$DIR/$i"; done\''

const OWNER = `
const { Lifetime } = await import(${JSON.stringify(LIFETIME)})
const lifetime = new Lifetime()
const { pid } = lifetime.spawn(['/bin/sh', '-c', ${JSON.stringify(`exec ${WRITER}`)}], { env: { ...process.env, DIR: lifetime.dir } })
process.stdout.write(String(pid))
setInterval(() => {}, 1_000)
`

test.skipIf(Bun.which('chrt') === null)('a child that is slow to die has ended before the directory goes', async () => {
  using temp = tempDir()
  const env = { ...process.env, TMPDIR: temp.path }
  const owner = Bun.spawn([process.execPath, '-e', OWNER], { env, stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' })
  const { value } = await owner.stdout.getReader().read()
  const group = Number(new TextDecoder().decode(value))
  const files = () => readdirSync(temp.path).flatMap((name) => readdirSync(join(temp.path, name)))
  await until(files, (names) => names.length > 0)
  const busy = Array.from({ length: 2 * availableParallelism() }, () =>
    Bun.spawn(['/bin/sh', '-c', 'while :; do :; done']),
  )
  try {
    owner.kill('SIGTERM')
    expect(await owner.exited).toBe(143)
    const alive = allPids().filter((pid) => {
      const stat = processStat(pid)
      return stat?.group === group && !isZombie(stat)
    })
    expect({ alive, left: readdirSync(temp.path) }).toEqual({ alive: [], left: [] })
  } finally {
    for (const loop of busy) loop.kill('SIGKILL')
  }
})
