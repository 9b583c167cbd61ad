/**
 * Searches files and whole processes for a secret: as it is, in base64, URL-escaped and JSON-escaped. A part of it counts, too: a
 * word of it, or what a word makes of base64.
 */
import { closeSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs'
import { processStat } from '../../shared/process/processes.ts'
import { childrenOf, linkOf, processesOf } from './task-processes.ts'

/** So many random letters and digits stand nowhere by chance. */
const WORD_BYTES = 12

/** Bytes that are read at a time. */
const WINDOW_BYTES = 4 * 1024 * 1024

/** Of a file without end. */
const MAX_FILE_BYTES = 256 * 1024 * 1024

const word = () => crypto.randomUUID().replaceAll('-', '').slice(0, WORD_BYTES)

/** A secret of words, with characters between them that URLs and JSON escape. These leave the words as they are. */
export const searchableSecret = (): string => `${word()}"/+${word()} &${word()}\\%${word()}`

export class SecretSearch {
  readonly #pieces: readonly Buffer[]

  constructor(secret: string) {
    const base64 = [0, 1, 2].flatMap((before) =>
      base64Pieces(Buffer.concat([Buffer.alloc(before), Buffer.from(secret)])),
    )
    this.#pieces = [...new Set([...secret.split(/[^a-z0-9]+/), ...base64])].map((piece) => Buffer.from(piece, 'latin1'))
  }

  isIn(content: Buffer | string): boolean {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content
    return this.#pieces.some((piece) => bytes.includes(piece))
  }

  /** Where processes have it: the names of the programs with `environ`, `cmdline`, `memory` or `files`. */
  inProcesses(pids: readonly number[]): string[] {
    const places = pids.flatMap((pid) => this.#inProcess(pid).map((place) => `${place} of ${commOf(pid)}`))
    return [...new Set(places)].toSorted()
  }

  #inProcess(pid: number): string[] {
    const dir = `/proc/${pid}`
    const found = ['environ', 'cmdline'].filter((name) => this.isIn(readFileSync(`${dir}/${name}`)))
    if (readdirSync(`${dir}/fd`).some((fd) => this.#isInFile(`${dir}/fd/${fd}`))) found.push('files')
    if (this.#isInMemory(pid)) found.push('memory')
    return found
  }

  /** What a descriptor leads to, and all bytes of that if it is a file, also one without a name. */
  #isInFile(path: string): boolean {
    if (this.isIn(linkOf(path))) return true
    if (!linkOf(path).startsWith('/') || /^\/(dev|proc|sys)\/(?!shm)/.test(linkOf(path))) return false
    const fd = openSync(path, 'r')
    try {
      const status = fstatSync(fd)
      return status.isFile() && this.#isBetween(fd, 0, Math.min(status.size, MAX_FILE_BYTES))
    } finally {
      closeSync(fd)
    }
  }

  /** Every mapping that the kernel lets be read, also those that the process itself may not read. */
  #isInMemory(pid: number): boolean {
    const maps = readFileSync(`/proc/${pid}/maps`, 'latin1').trimEnd().split('\n')
    const fd = openSync(`/proc/${pid}/mem`, 'r')
    try {
      const found = maps.map((line) => {
        const [range, , , , , name] = line.split(/\s+/) as [string, ...string[]]
        if (name === '[vsyscall]' || name?.startsWith('[vvar')) return false // the kernel's, the same for everybody
        const [from, to] = range.split('-').map((address) => Number.parseInt(address, 16)) as [number, number]
        return this.#isBetween(fd, from, to)
      })
      return found.includes(true)
    } finally {
      closeSync(fd)
    }
  }

  #isBetween(fd: number, from: number, to: number): boolean {
    const overlap = WORD_BYTES - 1
    const window = Buffer.allocUnsafe(Math.min(WINDOW_BYTES, to - from))
    for (let at = from; at < to; at += Math.max(window.length - overlap, 1)) {
      const length = readSync(fd, window, 0, Math.min(window.length, to - at), at)
      if (length !== Math.min(window.length, to - at)) throw new Error(`read ${length} bytes at ${at.toString(16)}`)
      if (this.isIn(window.subarray(0, length))) return true
      if (at + length >= to) break
    }
    window.fill(0) // or a search of this process would find it here
    return false
  }
}

/**
 * Processes of the tasks of a service, in its data directory: their launchers, what these have started, and whatever shares a pid
 * namespace with them.
 */
export function processesOfTasks({ pid }: { readonly pid: number }, dataDir: string): number[] {
  const isOfTask = new Set(processesOf(dataDir).filter((each) => each !== pid))
  const below = [pid]
  for (let parent = below.pop(); parent !== undefined; parent = below.pop()) {
    const children = childrenOf(parent)
    for (const child of children) isOfTask.add(child)
    below.push(...children)
  }
  const own = linkOf('/proc/self/ns/pid')
  const namespaces = new Set([...isOfTask].map((each) => linkOf(`/proc/${each}/ns/pid`)).filter((name) => name !== own))
  const all = readdirSync('/proc').filter(
    (name) => /^\d+$/.test(name) && namespaces.has(linkOf(`/proc/${name}/ns/pid`)),
  )
  for (const each of all) isOfTask.add(Number(each))
  return [...isOfTask].filter((each) => processStat(each)?.state !== 'Z')
}

const commOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, 'utf8').trim()

/** In both alphabets, without the ends, which depend on what is around the secret. */
function base64Pieces(bytes: Buffer): string[] {
  const pieces = bytes
    .toString('base64')
    .slice(4, -4)
    .match(new RegExp(`.{${WORD_BYTES}}`, 'g'))!
  return pieces.flatMap((piece) => [piece, piece.replaceAll('+', '-').replaceAll('/', '_')])
}
