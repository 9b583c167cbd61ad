/**
 * Goal: the embedded keeper does what every keeper promises. Method: the common suite, on a real data directory. A kill is a
 * copy of its files as they are at that moment.
 */
import { cpSync } from 'node:fs'
import { openEmbedded } from '../support/embedded-keeper.ts'
import { describeKeeper, type KeeperPlace, type OpenKeeper } from '../support/keeper-contract.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

describeKeeper(
  'the embedded keeper',
  async (): Promise<KeeperPlace> => {
    const dirs: TempDir[] = [tempDir()]
    const opened: OpenKeeper[] = []
    let isRefusing = false
    const syncFile = async () => {
      if (isRefusing) throw new Error('EIO: i/o error, fdatasync')
    }
    return {
      async open() {
        const open = await openEmbedded(dirs.at(-1)!.path, { syncFile })
        opened.push(open)
        return open
      },
      async kill() {
        const copy = tempDir()
        cpSync(dirs.at(-1)!.path, copy.path, { recursive: true })
        dirs.push(copy)
      },
      refuse(isNow) {
        isRefusing = isNow
      },
      async [Symbol.asyncDispose]() {
        isRefusing = false
        for (const { keeper } of opened) await keeper.stop().catch(() => {}) // those that a test has stopped
        for (const dir of dirs) dir[Symbol.dispose]()
      },
    }
  },
  25,
)
