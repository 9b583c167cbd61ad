/** The way of output that has to be masked: through pipes to the launcher, and from there to the logs, as in masked-logs.c. */
import { writeSync } from 'node:fs'
import type { Subprocess } from 'bun'
import { closeEnds, openPipe, type Pipe, streamOf } from '../../shared/process/pipe.ts'
import { STRAY_OUTPUT_MS } from '../../shared/process/process-group.ts'
import { Masker, MaskTexts } from '../../shared/streams/masker.ts'

/** Descriptors of the files. */
export interface Logs {
  readonly stdout: number
  readonly stderr: number
}

export class MaskedLogs {
  /** What the task has as stdout and stderr. */
  readonly stdio: readonly [stdout: number | 'pipe', stderr: number | 'pipe']
  readonly #pipes: readonly [Pipe | null, Pipe | null] = [openPipe(), openPipe()]
  readonly #texts: MaskTexts
  readonly #logs: Logs
  readonly #stop = new AbortController()
  #read: Promise<unknown> = Promise.resolve()

  constructor(texts: readonly Buffer[], logs: Logs) {
    this.#texts = new MaskTexts(texts)
    this.#logs = logs
    const [out, err] = this.#pipes
    this.stdio = [out?.writeEnd ?? 'pipe', err?.writeEnd ?? 'pipe']
  }

  /** To be called once the task has its ends. */
  follow(child: Subprocess): void {
    closeEnds('writeEnd', this.#pipes)
    const [out, err] = this.#pipes
    this.#read = Promise.all([
      this.#mask(streamOf(out, child.stdout), this.#logs.stdout),
      this.#mask(streamOf(err, child.stderr), this.#logs.stderr),
    ])
  }

  /** Reads the rest, once the task has ended. Stops soon if another process keeps a pipe open. */
  async finish(): Promise<void> {
    const timer = setTimeout(() => this.#stop.abort(), STRAY_OUTPUT_MS)
    await this.#read
    clearTimeout(timer)
    closeEnds('readEnd', this.#pipes)
  }

  /** Where a log takes no more, the pipe is given up, so that the next write of the task fails. */
  async #mask(stream: ReadableStream<Uint8Array>, log: number): Promise<void> {
    const masker = new Masker(this.#texts)
    const reader = stream.getReader()
    const cancel = () => void reader.cancel().catch(() => {})
    this.#stop.signal.addEventListener('abort', cancel, { once: true })
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        writeAll(log, masker.push(value))
      }
      writeAll(log, masker.end())
    } catch {
      cancel()
    }
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
}
