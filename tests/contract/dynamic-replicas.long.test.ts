/** Dynamic tasks where several replicas share a database: whoever adopts a graph has each plan with all that it has added. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { randomNumbers, SEED } from '../support/random.ts'
import { answered, describeReplicas } from '../support/replicas.ts'
import { ended, submit } from '../support/scoped-graphs.ts'
import { tempDir } from '../support/temp.ts'

const LENGTH = 40

describeReplicas('dynamic tasks', (cluster) => {
  test(`add each task once, also when the replica is killed while they do (seed ${SEED})`, async () => {
    const random = randomNumbers(SEED)
    using each = await cluster()
    using temp = tempDir()
    /** `sh next.sh 3` adds the task that runs `sh next.sh 4`. */
    const script = join(temp.path, 'next.sh')
    const params = (n: string) => ({ command: 'sh', args: [script, n] })
    const next = (n: string) => ({ id: `n${n}`, type: 'shell', dynamic: true, params: params(n) })
    const added = JSON.stringify(next('@')).replaceAll('"', '\\"').replaceAll('@', '$N')
    writeFileSync(script, `N=$(($1 + 1)); test $N -gt ${LENGTH} || echo "{\\"add_tasks\\": [${added}]}"\n`)
    const env = { SERVICE_SHELL_POLICY: 'open' }
    await using first = await each.replica([], env)
    await using second = await each.replica([], env)
    const graphs = [await submit(first, [next('0')]), await submit(first, [next('0')])]
    await Bun.sleep(random(200)) // the moment of the kill varies
    await first.stop('SIGKILL')
    for (const id of graphs) {
      await answered(second, `/graphs/${id}`)
      const graph = await ended(second, id)
      expect(graph).toMatchObject({ state: 'success', revision: LENGTH })
      expect(graph.tasks.map((task) => task.id)).toEqual(Array.from({ length: LENGTH + 1 }, (_, n) => `n${n}`))
    }
  })
})
