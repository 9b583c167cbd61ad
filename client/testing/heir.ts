/** The program that does what is left to do after a test process that was killed: `heir.ts DIRECTORY`. */
import { sweep } from './sweep.ts'

await sweep(process.argv[2]!)
