/** `taskmill audit`: who asked the control service for what, a page at a time. */
import type { AuditResponse } from '../../shared/contract/audit.ts'
import { DEFAULT_AUDIT_PAGE, MAX_AUDIT_PAGE } from '../../shared/contract/audit-limits.ts'
import { integer, text } from '../../shared/settings/flags.ts'
import { EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { inFlags } from './in-flags.ts'
import { timeOf } from './time-ago.ts'

export const audit = defineCommand({
  summary: 'Show who asked for what, the newest first: submissions, cancels, approvals, deletions and the like.',
  usage: '[--since 1d] [--limit 100] [--before ID]',
  settings: {
    since: text({ value: 'time', help: 'Only requests since then: RFC 3339, or a duration before now (1d).' }),
    limit: integer({
      value: 'records',
      default: String(DEFAULT_AUDIT_PAGE),
      min: 1,
      max: MAX_AUDIT_PAGE,
      help: 'Records on a page.',
    }),
    before: text({ value: 'id', help: 'Continue after a page: data.next of the answer before.' }),
  },
  maxArguments: 0,
  async run({ values: { since, limit, before }, client }) {
    const query = new URLSearchParams({ limit: String(limit) })
    if (since !== '') query.set('since', timeOf(since))
    if (before !== '') query.set('before', before)
    const answer = (await inFlags(client.call({ method: 'GET', path: `/audit?${query}` }))) as AuditResponse
    return {
      data: answer,
      exitCode: EXIT.success,
      table: async (look) => (await import('../table/audit.ts')).auditTable(answer, look),
    }
  },
})
