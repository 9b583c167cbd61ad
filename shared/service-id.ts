/** Names a service among all of this machine, for as long as its data directory exists. */
import { statSync } from 'node:fs'

/** `<device>-<inode>` of the data directory. Throws the system's error when the directory is not there. */
export function serviceIdOf(dataDir: string): string {
  const { dev, ino } = statSync(dataDir)
  return `${dev}-${ino}`
}

/** Beginning of the environment entry of every process that an attempt of that control service started. */
export const attemptMarkOf = (serviceId: string): string => `TASKMILL_ATTEMPT=${serviceId}/`
