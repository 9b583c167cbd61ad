/**
 * The process of the fork server: started, written to, ended by the end of its input. fork-server.h says what it does.
 */
import type { FileSink, Subprocess } from 'bun'
import { reserveProcesses } from '../../shared/process/process-reserve.ts'
import { TASK_MARK } from '../../shared/request/task-mark.ts'

export interface ForkServerSurroundings {
  /** Path of the native launcher. */
  readonly program: string
  /** Descriptor of the FIFO for lines to the service. */
  readonly notifyFd: number
  /** Descriptor of the file for what launchers complain about. */
  readonly complaintsFd: number
  /**
   * The lock of the data directory. The fork server holds it, too, so that no other service starts before it has ended.
   */
  readonly directoryLockFd: number
  /** The environment of the service. Our marks are passed on, so that a search for them finds the fork server. */
  readonly env: Readonly<Record<string, string | undefined>>
}

/** The descriptor that the fork server sees, after its three standard streams. */
const NOTIFY_FD = 3

/** Bytes reserved for what launchers show of themselves: the task id and directory, and the mark of the task. */
const ARGUMENTS_ROOM = 512
const MARK_ROOM = 256

export class ForkServerProcess {
  /** Resolves with its exit code, 128 + n for signal n, once it has ended. */
  readonly exited: Promise<number>
  readonly #child: Subprocess<'pipe', 'ignore', number>
  readonly #input: FileSink

  /** Throws what Bun.spawn throws. */
  constructor({ program, notifyFd, complaintsFd, directoryLockFd, env }: ForkServerSurroundings) {
    const child = Bun.spawn([program, '--fork-server', String(NOTIFY_FD), ' '.repeat(ARGUMENTS_ROOM)], {
      env: { ...marksOf(env), [TASK_MARK]: ' '.repeat(MARK_ROOM) },
      detached: true,
      stdio: ['pipe', 'ignore', complaintsFd, notifyFd, directoryLockFd],
    })
    reserveProcesses(child.pid)
    child.unref()
    this.#child = child
    this.exited = child.exited
    this.#input = child.stdin
  }

  /** Writes at once as far as the pipe has room, and the rest as soon as it has. */
  send(request: Buffer): void {
    this.#try(() => this.#input.write(request))
    this.#try(() => this.#input.flush())
  }

  /** Lets it end once it has read all requests. */
  close(): void {
    this.#try(() => this.#input.end())
  }

  /** A fork server that cannot be written to has ended, or is killed now. `exited` handles both. */
  #try(write: () => number | Promise<number>): void {
    const giveUp = () => this.#child.kill('SIGKILL')
    try {
      const written = write()
      if (written instanceof Promise) written.catch(giveUp)
    } catch {
      giveUp()
    }
  }
}

const marksOf = (env: ForkServerSurroundings['env']) =>
  Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('TASKMILL_')))
