/** Looking names up at name servers that do not answer. */
import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemResolve } from '../../../runtime/egress/dial.ts'
import { tempDir } from '../../support/temp.ts'

/** In a network and a view of files of its own, so that it can be a name server. */
const IN_NAMESPACES = ['unshare', '--mount', '--net', 'sh', '-c']
const PREPARE = 'ip link set lo up && mount --bind "$1" /etc/resolv.conf && exec "$2" "$3"'
const isPossible = Bun.spawnSync([...IN_NAMESPACES, 'ip link set lo up']).exitCode === 0

test('a name of this machine has its address', async () => {
  expect(await systemResolve('localhost')).toContain('127.0.0.1')
})

test.skipIf(!isPossible)(
  'lookups without an answer do not keep files from being read',
  async () => {
    using dir = tempDir()
    const [settings, program] = ['resolv.conf', 'program.ts'].map((name) => join(dir.path, name)) as [string, string]
    writeFileSync(settings, 'nameserver 127.0.0.1\noptions timeout:2 attempts:1\n')
    writeFileSync(
      program,
      `import { readFile } from 'node:fs/promises'
    import { createSocket } from 'node:dgram'
    import { systemResolve } from ${JSON.stringify(join(import.meta.dir, '../../../runtime/egress/dial.ts'))}
    const server = createSocket('udp4')
    const asked = new Promise((resolve) => server.once('message', resolve))
    await new Promise((resolve) => server.bind(53, '127.0.0.1', resolve))
    const names = Array.from({ length: 64 }, (_, i) => systemResolve('n' + i + '.example').then(() => 'found', () => 'not found'))
    await asked
    console.log(await Promise.race([readFile(import.meta.path).then(() => 'file'), ...names]))
    process.exit()`,
    )
    const { stdout, stderr } = Bun.spawnSync([...IN_NAMESPACES, PREPARE, 'sh', settings, process.execPath, program])
    expect([stdout.toString(), stderr.toString()]).toEqual(['file\n', ''])
  },
  30_000,
)
