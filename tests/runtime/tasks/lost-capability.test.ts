/** What a plan promises and a host has lost is told with its remedy; what nobody was promised does not matter. */
import { expect, test } from 'bun:test'
import { AVAILABLE, type CapabilitySet, missing } from '../../../runtime/plan/capability-set.ts'
import { lostCapability, planWithoutLostDefault } from '../../../runtime/tasks/launch-plan.ts'
import type { ExecutionPlan } from '../../../shared/contract/runtime.ts'
import { validLimits } from '../../../shared/request/limits.ts'

const LIMITS = validLimits({ pids_max: 5 })

const GONE = missing('--disable-cgroup is set', 'Start it without that flag.')

const capabilities = (...gone: string[]) =>
  Object.fromEntries(
    ['linux_sandbox', 'memory_cgroup', 'pids_cgroup'].map((name) => [name, gone.includes(name) ? GONE : AVAILABLE]),
  ) as unknown as CapabilitySet

const planOf = (profile: 'process' | 'linux_sandbox', oom_detection = false, pids_enforced = false) =>
  ({ effective_sandbox: { profile }, resource_enforcement: { oom_detection, pids_enforced } }) as ExecutionPlan

test.each([
  ['a sandbox', planOf('linux_sandbox'), 'linux_sandbox', 'sandbox.profile=linux_sandbox'],
  ['memory by a cgroup', planOf('linux_sandbox', true), 'memory_cgroup', 'limits.memory_bytes by a cgroup'],
  ['a number of processes', planOf('process', false, true), 'pids_cgroup', 'limits.pids_max'],
])('%s is missed where it was promised', (_, plan, name, what) => {
  const sentence = `${what} is unavailable: --disable-cgroup is set. Start it without that flag.`
  expect(lostCapability(plan, LIMITS, capabilities(name))).toBe(sentence)
  expect(lostCapability(plan, LIMITS, capabilities())).toBeUndefined()
  expect(lostCapability(planOf('process'), LIMITS, capabilities(name))).toBeUndefined()
})

test('a number of processes that the task did not ask for is not missed: it is launched without that limit', () => {
  const unasked = validLimits()
  const plan = planOf('linux_sandbox', false, true)
  expect(lostCapability(plan, unasked, capabilities('pids_cgroup'))).toBeUndefined()
  const enforcement = ({ resource_enforcement }: ExecutionPlan) => resource_enforcement
  expect(enforcement(planWithoutLostDefault(plan, unasked, capabilities('pids_cgroup')))).toMatchObject({
    ...{ pids_enforced: false, cgroup_enforced: false },
  })
  expect(planWithoutLostDefault(plan, unasked, capabilities())).toBe(plan)
  expect(planWithoutLostDefault(plan, LIMITS, capabilities('pids_cgroup'))).toBe(plan)
})
