/** Runs before every test file. The first test builds the executables, which takes time, so the timeout is long. */
import { setDefaultTimeout } from 'bun:test'

setDefaultTimeout(60_000)
