/**
 * Goal: SIGKILL around the ends of dynamic tasks loses none of what they add, and adds nothing twice.
 * Method: chains of plans in several graphs; the service is killed at a random moment, again and again, until all have ended.
 */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { randomNumbers, SEED } from '../support/random.ts'
import { ended, submit } from '../support/scoped-graphs.ts'
import { tempDir } from '../support/temp.ts'

const GRAPHS = 4
const LENGTH = 25
const KILLS = 12

test(`plans add each task once, whenever the service is killed (seed ${SEED})`, async () => {
  const random = randomNumbers(SEED)
  using dir = tempDir()
  using temp = tempDir()
  /** `sh next.sh 3` adds the task that runs `sh next.sh 4`. */
  const script = join(temp.path, 'next.sh')
  const next = (id: string, n: string) => ({
    ...{ id, type: 'shell', dynamic: true },
    params: { command: 'sh', args: [script, n] },
  })
  const added = JSON.stringify(next('n@', '@')).replaceAll('"', '\\"').replaceAll('@', '$N')
  writeFileSync(script, `N=$(($1 + 1)); test $N -gt ${LENGTH} || echo "{\\"add_tasks\\": [${added}]}"\n`)
  const start = () => startControl({ env: { SERVICE_SHELL_POLICY: 'open' }, dataDir: dir.path })
  let control = await start()
  const graphs = await Promise.all(Array.from({ length: GRAPHS }, () => submit(control, [next('n0', '0')])))
  for (let kill = 0; kill < KILLS; kill++) {
    await Bun.sleep(random(60)) // the moment of the kill varies
    await control.stop('SIGKILL')
    await control.dispose()
    control = await start()
  }
  for (const id of graphs) {
    const graph = await ended(control, id)
    expect(graph).toMatchObject({ state: 'success', revision: LENGTH })
    expect(graph.tasks.map((task) => task.id)).toEqual(Array.from({ length: LENGTH + 1 }, (_, n) => `n${n}`))
  }
  await control.dispose()
}, 120_000)
