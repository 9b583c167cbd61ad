/** The settings of the log file of a service (log-file.ts). */
import { integer, text } from './flags.ts'

export const logFileSettings = {
  logFile: text({
    value: 'file',
    help: 'File for the log, instead of standard output. One service per file.',
  }),
  maxLogBytes: integer({
    default: String(16 * 1024 * 1024),
    value: 'bytes',
    min: 64 * 1024,
    max: 1024 ** 4,
    help: 'Size of --log-file. A full file is renamed to NAME.1 and replaces the one before.',
  }),
}
