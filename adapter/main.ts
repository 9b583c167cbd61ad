/** The executable of the client. It tells its version before it loads any subcommand. */
import { BUILD_INFO } from '../shared/process/build-info.ts'
import { success } from './envelope.ts'
import { outputBeforeFlags, printAnswer } from './print.ts'

const [first, second] = process.argv.slice(2)
if (first === '--version' && second === undefined)
  process.exit(await printAnswer(success(BUILD_INFO), outputBeforeFlags()))
await import('./command-line.ts')
