/** The soft limit on processes in the text of a `/proc/PID/limits`. */
export function processLimitIn(limits: string): bigint {
  const [, soft] = /^Max processes +(\S+)/m.exec(limits)!
  return soft === 'unlimited' ? 2n ** 64n - 1n : BigInt(soft!)
}
