/** The launcher for this platform, out of our executable and into the data directory, where the kernel can run it. */
import { chmodSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import arm64 from './bin/taskmill-launcher-linux-arm64' with { type: 'file' }
import x64 from './bin/taskmill-launcher-linux-x64' with { type: 'file' }

const LAUNCHERS: Readonly<Record<string, string>> = { 'linux-x64': x64, 'linux-arm64': arm64 }

const PREFIX = 'taskmill-launcher-'

/** The path of the launcher in `dataDir`, put there and checked; undefined where there is none for this platform. */
export function installLauncher(dataDir: string): string | undefined {
  const embedded = LAUNCHERS[`${process.platform}-${process.arch}`]
  if (embedded === undefined) return undefined
  const bytes = readFileSync(embedded)
  const name = PREFIX + new Bun.CryptoHasher('sha256').update(bytes).digest('hex').slice(0, 16)
  const path = join(dataDir, name)
  if (!isSame(path, bytes)) {
    writeFileSync(`${path}.new`, bytes, { mode: 0o500 })
    chmodSync(`${path}.new`, 0o500)
    renameSync(`${path}.new`, path)
  }
  for (const other of readdirSync(dataDir)) {
    if (other.startsWith(PREFIX) && other !== name) rmSync(join(dataDir, other), { force: true })
  }
  return path
}

function isSame(path: string, bytes: Uint8Array): boolean {
  try {
    return readFileSync(path).equals(bytes)
  } catch {
    return false
  }
}
