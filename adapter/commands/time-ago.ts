/** Times of flags: an RFC 3339 time, or a duration before now. */
import { parseSpanMs } from '../../shared/settings/duration.ts'

/** A duration is that long ago. The service judges any other text. */
export function timeOf(given: string): string {
  const ms = parseSpanMs(given)
  return ms === null ? given : new Date(Date.now() - ms).toISOString()
}
