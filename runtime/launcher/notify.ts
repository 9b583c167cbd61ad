/** What launchers say while they live: lines through one pipe that all of them share and that outlives the service. */
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { loadLibc } from '../../shared/libc.ts'

export type Notice =
  | {
      readonly kind: 'started'
      readonly taskId: string
      readonly pid: number
      readonly pgid: number
      readonly startedAt: number
    }
  | { readonly kind: 'ended'; readonly taskId: string }

/** The notice in a line, or undefined for one that is not of ours. */
export function parseNotice(line: string): Notice | undefined {
  const [word, taskId = '', ...numbers] = line.split(' ')
  if (word === 'ended' || word === 'failed') return { kind: 'ended', taskId }
  const [pid, pgid, , startedAt] = numbers.map(Number)
  if (word !== 'started' || !Number.isSafeInteger(startedAt)) return undefined
  return { kind: 'started', taskId, pid: pid!, pgid: pgid!, startedAt: startedAt! }
}

export interface NotifyPipe {
  /** To pass on to launchers. */
  readonly fd: number
  close(): void
}

/** Opens the pipe in `dataDir`, which launchers of an earlier service may still have open, and reads it for ever. */
export function openNotifyPipe(dataDir: string, onNotice: (notice: Notice) => void): NotifyPipe {
  const path = join(dataDir, 'launchers')
  const libc = loadLibc({ mkfifo: { args: ['cstring', 'u32'], returns: 'i32' } } as const)
  libc?.mkfifo(Buffer.from(`${path}\0`), 0o600)
  // Read and write: it never ends, whoever comes and goes at the other end.
  const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  void readLines(fd, (line) => {
    const notice = parseNotice(line)
    if (notice !== undefined) onNotice(notice)
  })
  return { fd, close: () => closeSync(fd) }
}

async function readLines(fd: number, each: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of Bun.file(fd).stream()) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) each(line)
  }
}
