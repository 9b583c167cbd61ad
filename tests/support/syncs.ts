/** Records the syncs that a call makes before it returns, in order. */
import { spyOn } from 'bun:test'
import * as fs from 'node:fs'

interface WatchedSyncs extends Disposable {
  readonly synced: readonly ('file' | 'directory')[]
}

/** With `sync` in place of the system's. */
export function watchSyncs(sync: (fd: number) => void = fs.fsyncSync): WatchedSyncs {
  const synced: ('file' | 'directory')[] = []
  const spy = spyOn(fs, 'fsyncSync').mockImplementation((fd) => {
    synced.push(fs.fstatSync(fd).isDirectory() ? 'directory' : 'file')
    sync(fd)
  })
  return { synced, [Symbol.dispose]: () => spy.mockRestore() }
}
