/** The id of a service on this machine, valid as long as its data directory exists. */
import { statSync } from 'node:fs'

/** `<device>-<inode>` of the data directory. Throws the system's error if there is no such directory. */
export function serviceIdOf(dataDir: string): string {
  const { dev, ino } = statSync(dataDir)
  return `${dev}-${ino}`
}

/** The beginning of an environment entry that all processes of a control service's attempts have. */
export const attemptMarkOf = (serviceId: string): string => `TASKMILL_ATTEMPT=${serviceId}/`
