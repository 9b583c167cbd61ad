/**
 * Kills the service at random moments while clients pause, resume, retry and patch graphs (`support/changed-graphs.ts`).
 *
 * Each round starts it on the directory of the round before. The clients ask again until they are answered, and their keys make a
 * patch the same one. In the end each graph has what its answers told.
 *
 * The seed is part of the title; `make crash SEED= ROUNDS=` repeats a run.
 */
import { test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ChangedGraphs } from '../support/changed-graphs.ts'
import { startControl } from '../support/control.ts'
import { PatientClient } from '../support/patient-client.ts'
import { limitOf, ROUNDS, randomNumbers, SEED } from '../support/random.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

test(
  `each acknowledged change of a graph happens once (${ROUNDS} kills, seed ${SEED})`,
  async () => {
    using dir = tempDir()
    const random = randomNumbers(SEED + 4)
    const log = join(dir.path, 'attempts')
    writeFileSync(log, '')
    const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1)
    const options = {
      dataDir: join(dir.path, 'data'),
      env: { SERVICE_SHELL_POLICY: 'open' },
      flags: ['--kill-grace', '100ms', '--persist-interval', '20ms', '--max-concurrency', '4'],
    }
    let urls: string[] = []
    const client = new PatientClient(() => urls, random)
    const graphs = new ChangedGraphs(client, log, lines, random)
    try {
      graphs.start(4)
      for (let round = 0; round < ROUNDS; round++) {
        await using control = await startControl(options)
        urls = [control.url]
        const { patches } = graphs.counts
        await Bun.sleep(10 + random(150))
        await until(
          () => graphs.counts.patches,
          (count) => count > patches,
        )
        control.process.kill('SIGKILL')
        await control.process.exited
      }
      await using control = await startControl(options)
      urls = [control.url]
      await graphs.stop()
      await graphs.comeToRest()
    } finally {
      client.stop()
    }
  },
  limitOf(ROUNDS),
)
