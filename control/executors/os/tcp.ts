/** Checks that a TCP server accepts connections: connects and disconnects. `{ok: true, address}`. */
import { Type } from '../../../shared/contract/schema-builder.ts'
import { faultText } from '../../../shared/http/connection-fault.ts'
import { boundedWait } from '../bounded-wait.ts'
import { ExecutionError, type ExecutorContext, invalidInput } from '../executor.ts'
import { ToolParams } from '../params.ts'
import type { OsTool } from './os.ts'

export const DEFAULT_CONNECT_MS = 5_000

/** Maximum milliseconds for a connection. Retries of the task try again. */
export const MAX_CONNECT_MS = 60_000

export const tcpParams = new ToolParams(
  'tcp',
  Type.Object({
    address: Type.String({
      missing: 'address is required (host:port)',
      expected: 'string',
      description: 'host:port, such as db.internal:5432 or [::1]:80.',
    }),
    timeout_ms: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_CONNECT_MS,
        expected: `integer from 1 to ${MAX_CONNECT_MS}`,
        description: `Milliseconds to wait for the connection. Default ${DEFAULT_CONNECT_MS}.`,
      }),
    ),
  }),
)

export interface TcpResult {
  readonly ok: true
  /** The address as submitted. */
  readonly address: string
}

export const tcp: OsTool = {
  name: 'tcp',
  params: tcpParams,
  checkInput: (input) => void parseAddress(tcpParams.parse(input).address),
  execute(input, context) {
    const { address, timeout_ms = DEFAULT_CONNECT_MS } = tcpParams.parse(input)
    return reach(address, parseAddress(address), timeout_ms, context)
  },
}

async function reach(
  address: string,
  endpoint: Endpoint,
  limitMs: number,
  context: ExecutorContext,
): Promise<TcpResult> {
  const { connect } = await import('node:net') // a static import would cost each start 4 ms
  await context.begin()
  const socket = connect(endpoint)
  const connected = new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.on('error', reject) // stays attached: an error after the end without a listener would be uncaught
  })
  const what = `tcp ${address}`
  try {
    await boundedWait(connected, {
      ...{ signal: context.signal, limitMs, what, missing: 'connection' },
      release: () => socket.destroy(),
    })
    return { ok: true, address }
  } catch (error) {
    if (error instanceof ExecutionError) throw error
    throw new ExecutionError('external_failure', `${what}: ${faultText(error)}`, { cause: error })
  }
}

export interface Endpoint {
  readonly host: string
  readonly port: number
}

/** Parses `host:port`. IPv6 addresses are in brackets. Throws `invalid_input`. */
export function parseAddress(address: string): Endpoint {
  const parts = /^(?:\[([0-9a-f:.]+(?:%[^\s\]]+)?)\]|([^\s:[\]\0]+)):(\d{1,5})$/i.exec(address)
  if (parts === null) {
    const hint = /^[0-9a-f]*:[0-9a-f:.]*:\d*$/i.test(address) ? '; write an IPv6 address in brackets: [::1]:80' : ''
    throw invalidInput(`parse tcp params: address: expected host:port, got ${JSON.stringify(address)}${hint}`)
  }
  const port = Number(parts[3])
  if (port < 1 || port > 65_535) {
    throw invalidInput(`parse tcp params: address: expected a port from 1 to 65535, got ${parts[3]}`)
  }
  return { host: parts[1] ?? parts[2]!, port }
}
