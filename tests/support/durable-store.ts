/** A store whose changes go to a journal in a temporary directory, and what a crash leaves there. */
import { cpSync, existsSync, readdirSync, readFileSync, truncateSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Journal } from '../../control/log/journal.ts'
import { Notes } from '../../control/log/notes.ts'
import { Persistence } from '../../control/log/persistence.ts'
import { ResultFiles } from '../../control/log/result-files.ts'
import { TaskStore } from '../../control/task/task-store.ts'
import { systemCodeOf } from '../../shared/contract/errors.ts'
import { DiskReserve } from '../../shared/files/disk-reserve.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { newEvents } from './events.ts'
import { type TempDir, tempDir } from './temp.ts'

export type DurableStore = ReturnType<typeof durableStore>

/** Snapshots are taken only when a test asks for one. `syncFile` stands for the disk. Its directory is in `parent`. */
export function durableStore(syncFile: (fd: number) => Promise<void> = async () => {}, parent?: string) {
  const temp = tempDir(parent)
  const dir = temp.path
  const log = silentLog()
  const store = new TaskStore()
  const journal = new Journal({ dataDir: dir, oldestSegment: 1, firstSegment: 1, log, syncFile })
  const options = {
    ...{ store, journal, dataDir: dir, log, intervalMs: 3_600_000 },
    notes: new Notes(),
    resultFiles: new ResultFiles(dir, [], log),
    ...newEvents(dir, journal),
  }
  const persistence = new Persistence({ ...options, reserve: new DiskReserve(dir) }, NOTHING)
  const { snapshots } = persistence
  const end = async () => {
    if (!journal.isClosed) await persistence.stop()
    temp[Symbol.dispose]()
  }
  return {
    dir,
    store,
    history: options.history,
    numbers: options.numbers,
    persistence,
    snapshots,
    [Symbol.asyncDispose]: end,
  }
}

/** A new data directory. */
const NOTHING = { changed: [], gone: [], packs: [], isStateFileBehind: false }

/** The state file, and the packs and segments of the log. */
export const isStateFile = (name: string): boolean => /^(state\.json|format\.json|(pack|journal)-.*\.log)$/.test(name)

export const lastSegment = (dir: string): string =>
  readdirSync(dir)
    .filter((name) => /^journal-\d+\.log$/.test(name))
    .sort()
    .at(-1)!

/**
 * Copies of the files in `dirs` for which `isCopied` is true; of two with the same name, the later one counts. Without the
 * last `cutBytes` bytes of the newest segment.
 */
export function crashedCopy(dirs: readonly string[], isCopied: (name: string) => boolean, cutBytes = 0): TempDir {
  const copy = liveCopy(dirs, isCopied)
  if (cutBytes > 0) {
    const path = join(copy.path, lastSegment(copy.path))
    truncateSync(path, readFileSync(path).length - cutBytes)
  }
  return copy
}

/** Copies of the files in `dirs` for which `isCopied` is true, while files are renamed and removed there. */
export function liveCopy(dirs: readonly string[], isCopied: (name: string) => boolean = () => true): TempDir {
  for (;;) {
    const copy = tempDir()
    try {
      for (const dir of dirs) {
        const filter = (path: string) => path === dir || isCopied(basename(path))
        cpSync(dir, copy.path, { recursive: true, filter })
      }
      return copy
    } catch (error) {
      copy[Symbol.dispose]()
      if (systemCodeOf(error) !== 'ENOENT' || !dirs.every(existsSync)) throw error
    }
  }
}
