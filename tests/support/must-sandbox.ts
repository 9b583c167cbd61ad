/** Returns the reason why the sandbox cannot be tested here, or throws if TASKMILL_MUST_SANDBOX=1. */
export function mustSandbox(reason: string | undefined): string | undefined {
  if (reason !== undefined && process.env.TASKMILL_MUST_SANDBOX === '1')
    throw new Error(`the sandbox cannot be tested: ${reason}`)
  return reason
}
