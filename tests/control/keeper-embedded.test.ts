/**
 * Goal: the embedded keeper does what every keeper promises. Method: the common suite, on a real data directory. A kill is a
 * copy of its files as they are at that moment.
 */
import { liveCopy } from '../support/durable-store.ts'
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
        dirs.push(liveCopy([dirs.at(-1)!.path]))
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
