/** The executable of the control service. It tells its version before it loads anything else. */
import { versionLine } from '../shared/process/build-info.ts'

const [first, second] = process.argv.slice(2)
if (first === '--version' && second === undefined) console.log(versionLine('taskmill-control'))
else await import('./command-line.ts')
