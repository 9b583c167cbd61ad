/** What holds for every test file. A test starts real programs, and the first one builds them: it may take its time. */
import { setDefaultTimeout } from 'bun:test'

setDefaultTimeout(60_000)
