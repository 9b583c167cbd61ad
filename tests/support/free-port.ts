/** Ports for services of tests, as `taskmill/testing` finds them, each for one test process alone. */
import { freePort as anyFreePort } from '../../client/testing/free-port.ts'

/** Listeners that claim the numbers. Other test processes see them, and they end with this process. */
const claims: Bun.UnixSocketListener<unknown>[] = []

export async function freePort(): Promise<number> {
  for (;;) {
    const port = await anyFreePort()
    if (isClaimed(port)) return port
  }
}

/** Whether this process has the number now. An abstract socket needs no file, and only Linux has it. */
function isClaimed(port: number): boolean {
  if (process.platform !== 'linux') return true
  try {
    const claim = Bun.listen({ unix: `\0taskmill-test-port-${port}`, socket: { data() {} } })
    claim.unref()
    claims.push(claim)
    return true
  } catch {
    return false // another test has it
  }
}
