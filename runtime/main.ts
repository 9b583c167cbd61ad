/**
 * The executable of the runtime service. It tells its version before it loads anything else. Threads of `serve` run the
 * same program (host/threads.ts).
 */
import { versionLine } from '../shared/process/build-info.ts'

const [first, second] = process.argv.slice(2)
if (first === '--version' && second === undefined) console.log(versionLine('taskmill-runtime'))
else await import('./command-line.ts')
