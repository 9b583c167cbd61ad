/** Connections of a task in words. Pure. */
import type { NetworkConnection, TaskNetwork } from '../../../shared/contract/task-network.ts'
import { bytesText, countText } from './amounts.ts'

/** `pypi.org:443`, `[::1]:80`. Empty if the task did not come to name a host. */
export const targetOf = ({ host, port }: NetworkConnection): string =>
  host === undefined ? '' : `${host.includes(':') ? `[${host}]` : host}:${port}`

/** What is not said by verdict and rule: why it was refused, failed or was cut. */
export const whyOf = ({ verdict, reason, message }: NetworkConnection): string | undefined =>
  verdict === 'allowed' && reason === undefined ? undefined : message

/** `3 allowed, 1 refused, 1 open, 1.2 KiB sent, 3 MiB received`. */
export function totalsText({ usage, open }: TaskNetwork): string {
  if (usage === undefined) return ''
  const counts = [
    `${countText(usage.connections_allowed)} allowed`,
    `${countText(usage.connections_refused)} refused`,
    ...(open > 0 ? [`${countText(open)} open`] : []),
  ]
  return [...counts, `${bytesText(usage.bytes_sent)} sent`, `${bytesText(usage.bytes_received)} received`].join(', ')
}
