/** Writes `taskmill-escape`, which is embedded in our executable, to a path where a sandbox can run it. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import linuxArm64 from './bin/taskmill-escape-linux-arm64' with { type: 'file' }
import linuxX64 from './bin/taskmill-escape-linux-x64' with { type: 'file' }

const EMBEDDED: Readonly<Record<string, string>> = { 'linux-x64': linuxX64, 'linux-arm64': linuxArm64 }

/** Its name in a workspace. */
export const PROGRAM = 'taskmill-escape'

/** Readable and executable for every user, because the task may have another uid. */
const MODE = 0o555

/** Writes the program for this platform to `path`. Throws if there is none. */
export function putEscapeProgram(path: string, mode = MODE): void {
  const embedded = EMBEDDED[`${process.platform}-${process.arch}`]
  if (embedded === undefined)
    throw new Error(`there is nothing to try to escape with on ${process.platform} ${process.arch}`)
  writeFileSync(path, readFileSync(embedded))
  chmodSync(path, mode)
}
