/**
 * Installs the embedded launcher where the kernel can run it.
 *
 * Our executable is one file and contains the launchers of all platforms. A start writes that of this machine into the
 * data directory, under the name of its hash. Launchers of an earlier version may still run there: they keep their
 * program although its file is removed.
 */
import {
  chmodSync,
  closeSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import linuxArm64 from './bin/taskmill-launcher-linux-arm64' with { type: 'file' }
import linuxX64 from './bin/taskmill-launcher-linux-x64' with { type: 'file' }

const EMBEDDED: Readonly<Record<string, string>> = { 'linux-x64': linuxX64, 'linux-arm64': linuxArm64 }

const NAME = /^launcher-[0-9a-f]{32}(\.new)?$/

/** The owner may read and execute it, and nobody may write it. */
const MODE = 0o500

/** Exit code of a launcher without arguments. */
const USAGE_EXIT_CODE = 125

/** A program that acts as launcher, and how it is given the environment of a task. */
export interface LauncherProgram {
  readonly command: readonly [program: string, ...args: string[]]
  readonly wrapEnvironment: (env: Readonly<Record<string, string>>) => Readonly<Record<string, string>>
  /** Whether it is the native launcher, which supports all kernel features. */
  readonly isNative: boolean
}

/** The launcher of this platform, below `dataDir`; `portable` where there is none. */
export function chooseLauncher(dataDir: string, portable: LauncherProgram): LauncherProgram {
  return `${process.platform}-${process.arch}` in EMBEDDED
    ? { command: [installLauncher(dataDir)], wrapEnvironment: (env) => env, isNative: true }
    : portable
}

/** SHA-256 of the compiled launcher for this platform, as in bin/SOURCES.sha256. Undefined where there is none. */
export function launcherHash(): string | undefined {
  const embedded = EMBEDDED[`${process.platform}-${process.arch}`]
  return embedded === undefined ? undefined : hashOf(readFileSync(embedded))
}

const hashOf = (content: Buffer): string => new Bun.CryptoHasher('sha256').update(content).digest('hex')

/**
 * Installs the launcher below `dataDir`, proves that it runs, and returns its path. Throws with a remedy when either
 * fails.
 */
export function installLauncher(dataDir: string): string {
  const embedded = EMBEDDED[`${process.platform}-${process.arch}`]
  if (embedded === undefined) throw new Error(`there is no launcher for ${process.platform} on ${process.arch}`)
  const content = readFileSync(embedded)
  const name = `launcher-${hashOf(content).slice(0, 32)}`
  const path = join(dataDir, name)
  try {
    if (!isInPlace(path, content)) putInPlace(path, content)
    for (const other of readdirSync(dataDir)) if (NAME.test(other) && other !== name) unlinkSync(join(dataDir, other))
  } catch (error) {
    throw new Error(`cannot put the launcher into ${dataDir}: ${messageOf(error)}`, { cause: error })
  }
  prove(path)
  return path
}

/** The name alone proves nothing: after a power cut the file may have other content. */
function isInPlace(path: string, content: Buffer): boolean {
  const status = statSync(path, { throwIfNoEntry: false })
  if (status === undefined || !status.isFile() || status.size !== content.length) return false
  if (!readFileSync(path).equals(content)) return false
  if ((status.mode & 0o777) !== MODE) chmodSync(path, MODE)
  return true
}

function putInPlace(path: string, content: Buffer): void {
  const aside = `${path}.new`
  rmSync(aside, { force: true }) // a crash may have left one, which is not writable
  const fd = openSync(aside, 'w', MODE)
  try {
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(aside, path)
}

function prove(path: string): void {
  let reason: string
  try {
    const { exitCode, signalCode } = Bun.spawnSync([path], { env: {}, stdio: ['ignore', 'ignore', 'ignore'] })
    if (exitCode === USAGE_EXIT_CODE) return
    reason = `it ended with ${signalCode ?? exitCode}`
  } catch (error) {
    const isForbidden = ['EACCES', 'EPERM'].includes(systemCodeOf(error) ?? '')
    reason = isForbidden ? 'its file system is mounted noexec: choose another with --data-dir' : messageOf(error)
  }
  throw new Error(`cannot run the launcher ${path}: ${reason}`)
}
