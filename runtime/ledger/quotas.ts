/** Quotas of tenants: `--tenant-quota NAME=slots:N[,memory:BYTES][,pids:N]`, repeatable. Pure. */
import type { Capacity } from '../../shared/contract/runtime-info.ts'
import { Expected } from '../../shared/settings/flags.ts'

/** By tenant. */
export type TenantQuotas = ReadonlyMap<string, Capacity>

export const QUOTA_FORM = 'NAME=slots:N[,memory:BYTES][,pids:N]'

/** A limit, because each tenant with a quota is considered whenever a task may start. */
export const MAX_QUOTAS = 1_000

/** Names of the counters on the command line. */
const COUNTERS = { slots: 'task_slots', memory: 'memory_bytes', pids: 'pids' } as const

const isCounter = (key: string): key is keyof typeof COUNTERS => Object.hasOwn(COUNTERS, key)

const not = (why: string) => new Expected(`${QUOTA_FORM}: ${why}`)

/** Parses a comma-separated list of quotas, which a repeated flag becomes. Each name begins a quota. */
export function parseTenantQuotas(text: string): TenantQuotas | Expected {
  const quotas = new Map<string, Partial<Capacity>>()
  let tenant: string | undefined
  for (const part of text.split(',')) {
    const nameEnd = part.lastIndexOf('=')
    if (nameEnd >= 0) {
      tenant = part.slice(0, nameEnd).trim()
      if (tenant === '') return not('the name is missing')
      if (quotas.has(tenant)) return not(`tenant ${JSON.stringify(tenant)} has two quotas`)
      quotas.set(tenant, {})
    }
    if (tenant === undefined) return not('the name is missing')
    const why = addCounter(quotas.get(tenant)!, part.slice(nameEnd + 1).trim())
    if (why !== null) return not(`${why} (tenant ${JSON.stringify(tenant)})`)
  }
  for (const [name, { task_slots }] of quotas) {
    if (task_slots === undefined) return not(`slots are missing (tenant ${JSON.stringify(name)})`)
  }
  if (quotas.size > MAX_QUOTAS) return not(`at most ${MAX_QUOTAS} tenants`)
  return quotas as Map<string, Capacity>
}

/** The fault of one counter, such as `memory:1024`, or null. */
function addCounter(quota: Partial<Capacity>, text: string): string | null {
  const [, key = text, digits = ''] = /^([^:]*):(.*)$/.exec(text) ?? []
  if (!isCounter(key)) return `${JSON.stringify(key)} is none of ${Object.keys(COUNTERS).join(', ')}`
  const amount = /^\d+$/.test(digits) ? Number(digits) : 0
  if (amount < 1 || !Number.isSafeInteger(amount)) {
    return `${key} must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`
  }
  if (quota[COUNTERS[key]] !== undefined) return `${key} is given twice`
  quota[COUNTERS[key]] = amount
  return null
}
