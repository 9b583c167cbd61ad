/**
 * Goal: a task gets what it asks for, or is told what it does not get and why, or is refused with the remedy.
 * Method: one missing thing at a time in a table; random requests on random hosts, where strict and adaptive must agree.
 */
import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import fc from 'fast-check'
import { reservationFor } from '../../../runtime/ledger/amounts.ts'
import type { CapabilitySet } from '../../../runtime/plan/capability-set.ts'
import { CONTROL_ACCESS, type ServiceAccess } from '../../../runtime/plan/open-services.ts'
import { type PlanSettings, planTask } from '../../../runtime/plan/plan.ts'
import { requestedSandbox } from '../../../runtime/plan/requested-network.ts'
import { ExecutionPlan, type PlannedSandbox } from '../../../shared/contract/runtime.ts'
import { NAMESPACES, type SubmitTaskRequest } from '../../../shared/contract/runtime-request.ts'
import type { TaskRequest } from '../../../shared/request/validate.ts'
import { hostWithout, MISSING, type Part, randomHost } from '../../support/capabilities.ts'
import { COMMAND, randomRequest, read, refusalOf, request } from '../../support/runtime-requests.ts'

const adaptive = { capability_mode: 'adaptive' } as const
const strict = { capability_mode: 'strict' } as const

/** A service whose tasks can reach no service of ours that has no token. */
const closed = { runtime: 'token', control: 'token' } as const
const ADAPTIVE: PlanSettings = {
  ...adaptive,
  network: 'none',
  access: closed,
  default_limits: { pids_max: undefined, disk_bytes: undefined },
}
const STRICT: PlanSettings = { ...ADAPTIVE, ...strict }
const plan = (parts: SubmitTaskRequest, host: CapabilitySet = hostWithout()) => planTask(request(parts), host, ADAPTIVE)

/** Asks for everything that can be asked for. */
const EVERYTHING: SubmitTaskRequest = {
  limits: { cpu_time_sec: 1, memory_bytes: 2, pids_max: 3 },
  sandbox: {
    profile: 'linux_sandbox',
    workspace_subdir: 'src',
    rootfs: '/srv/root',
    chroot: true,
    namespaces: { mount: true, pid: true, uts: true, ipc: true, net: true, cgroup: true, user: true },
  },
}

const DEFAULT_LIMITS = {
  cpu_time_enforced: false,
  memory_enforced: false,
  pids_enforced: false,
  cgroup_enforced: false,
}

describe('on a host that can do everything', () => {
  test('a task that asks for nothing gets the process profile', () => {
    expect(plan({})).toEqual({
      capability_mode: 'adaptive',
      requested_sandbox: { profile: 'process', chroot: false },
      effective_sandbox: { profile: 'process', chroot: false },
      resource_enforcement: { wall_time_ms: 300_000, ...DEFAULT_LIMITS, oom_detection: false },
      degraded: false,
      fallback_reasons: [],
      capability_warnings: [],
    })
  })

  test('a task that asks for everything gets it', () => {
    expect(plan(EVERYTHING)).toEqual({
      capability_mode: 'adaptive',
      requested_sandbox: EVERYTHING.sandbox as PlannedSandbox,
      effective_sandbox: { ...(EVERYTHING.sandbox as PlannedSandbox), network: 'none' },
      resource_enforcement: {
        wall_time_ms: 300_000,
        cpu_time_sec: 1,
        cpu_time_enforced: true,
        memory_bytes: 2,
        memory_enforced: true,
        pids_max: 3,
        pids_enforced: true,
        cgroup_enforced: true,
        oom_detection: true,
      },
      degraded: false,
      fallback_reasons: [],
      capability_warnings: [],
    })
  })

  test('a sandbox without pids of its own warns where no cgroup ends what it starts', () => {
    const shared = { sandbox: { profile: 'linux_sandbox', namespaces: { pid: false } } } as const
    const noGroups = { ...hostWithout('memory_cgroup', 'pids_cgroup'), cgroup_version: 0 } as const
    expect(plan(shared).capability_warnings).toEqual([])
    expect(plan({ sandbox: { profile: 'linux_sandbox' } }, noGroups).capability_warnings).toEqual([])
    expect(plan(shared, noGroups).capability_warnings).toEqual([
      'without sandbox.namespaces.pid and without a cgroup: what the task starts may outlive it where its launcher is killed. Mend it.',
    ])
  })

  test('memory in the process profile is address space, and the plan says so', () => {
    const { resource_enforcement, degraded, capability_warnings } = plan({ limits: { memory_bytes: 5 } })
    expect(resource_enforcement).toMatchObject({ memory_bytes: 5, memory_enforced: true, oom_detection: false })
    expect(resource_enforcement.cgroup_enforced).toBe(false)
    expect(degraded).toBe(false)
    expect(capability_warnings).toEqual([expect.stringContaining('RLIMIT_AS')])
  })

  test.each<[string, SubmitTaskRequest, string]>([
    ['namespaces', { sandbox: { namespaces: { net: true } } }, 'sandbox.namespaces means nothing with'],
    ['a rootfs', { sandbox: { rootfs: '/srv' } }, 'sandbox.rootfs means nothing without'],
    ['a rootfs', { sandbox: { profile: 'linux_sandbox', rootfs: '/srv' } }, 'sandbox.rootfs means nothing without'],
  ])('%s without what it needs is no fault, and the plan says so', (_, parts, warning) => {
    const { effective_sandbox, degraded, capability_warnings } = plan(parts)
    expect(effective_sandbox.rootfs).toBeUndefined()
    expect(degraded).toBe(false)
    expect(capability_warnings).toEqual([expect.stringContaining(warning)])
  })
})

/** What one missing thing costs a task that asks for everything; all else stays. */
const COSTS: [part: Part, changes: object, reasons: RegExp[]][] = [
  [
    'chroot',
    { effective_sandbox: { chroot: false, rootfs: undefined } },
    [/^sandbox\.chroot is unavailable \(it broke\): /],
  ],
  [
    'mount',
    { effective_sandbox: { chroot: false, rootfs: undefined, namespaces: { mount: false } } },
    [
      /^sandbox\.namespaces\.mount is unavailable \(it broke\): the task shares mount with the host$/,
      /^sandbox\.chroot is unavailable \(it needs a mount namespace\): /,
    ],
  ],
  ...NAMESPACES.filter((name) => name !== 'mount').map((name): (typeof COSTS)[number] => [
    name,
    { effective_sandbox: { namespaces: { [name]: false }, ...(name === 'net' && { network: 'host' }) } },
    [
      new RegExp(
        `^sandbox\\.namespaces\\.${name} is unavailable \\(it broke\\): the task shares ${name} with the host$`,
      ),
    ],
  ]),
  [
    'rlimit_cpu',
    { resource_enforcement: { cpu_time_enforced: false } },
    [/^limits\.cpu_time_sec is unavailable \(it broke\): CPU time is not limited$/],
  ],
  [
    'memory_cgroup',
    { resource_enforcement: { oom_detection: false } },
    [/^limits\.memory_bytes by a cgroup is unavailable \(it broke\): address space \(RLIMIT_AS\) is limited instead/],
  ],
  [
    'pids_cgroup',
    { resource_enforcement: { pids_enforced: false } },
    [/^limits\.pids_max is unavailable \(it broke\): the number of processes is not limited$/],
  ],
  ['rlimit_memory', {}, []],
  ['rootless', {}, []],
]

describe('one thing that is missing costs only what needs it', () => {
  const whole = plan(EVERYTHING)

  test.each(COSTS)('%s', (part, changes, reasons) => {
    const { fallback_reasons, degraded, capability_warnings: _, ...got } = plan(EVERYTHING, hostWithout(part))
    const { fallback_reasons: __, degraded: ___, capability_warnings: ____, ...expected } = structuredClone(whole)
    expect(JSON.parse(JSON.stringify(got))).toEqual(JSON.parse(JSON.stringify(merged(expected, changes))))
    expect(degraded).toBe(reasons.length > 0)
    expect(fallback_reasons).toHaveLength(reasons.length)
    for (const [i, reason] of reasons.entries()) expect(fallback_reasons[i]).toMatch(reason)
  })

  test.each(COSTS.filter(([, , reasons]) => reasons.length > 0))('%s, and a strict task is refused', (part) => {
    const refusal = refusalOf(() => planTask(request({ ...EVERYTHING, policy: strict }), hostWithout(part), ADAPTIVE))
    expect(refusal).toMatchObject({ code: 'unsupported_capability', status: 400, details: { ...remedy } })
    expect(refusal.message).toBe(
      `${(refusal.details as { capability: string }).capability} is unavailable: it broke. Mend it.`,
    )
  })

  const remedy = { reason: MISSING.reason, remedy: MISSING.remedy }
})

describe('without the profile linux_sandbox', () => {
  const host = hostWithout('linux_sandbox')

  test('an adaptive task runs with profile process, and its limits hold as they do there', () => {
    expect(plan(EVERYTHING, host)).toMatchObject({
      effective_sandbox: { profile: 'process', workspace_subdir: 'src', chroot: false },
      resource_enforcement: {
        cpu_time_enforced: true,
        memory_enforced: true,
        pids_enforced: true,
        cgroup_enforced: true,
        oom_detection: false,
      },
      degraded: true,
      fallback_reasons: [
        'sandbox.profile=linux_sandbox is unavailable (it broke): the task runs with profile process, without isolation and without sandbox.chroot',
      ],
    })
    expect(Object.keys(plan(EVERYTHING, host).effective_sandbox)).toEqual(['profile', 'workspace_subdir', 'chroot'])
  })

  test('a strict task is refused, whatever it is strict by', () => {
    const asks: SubmitTaskRequest = { sandbox: { profile: 'linux_sandbox' } }
    for (const [parts, defaults] of [
      [{ ...asks, policy: strict }, ADAPTIVE],
      [asks, STRICT],
      [{ ...asks, control_context: { requires_strict_sandbox: true } }, ADAPTIVE],
    ] as const) {
      expect(refusalOf(() => planTask(request(parts), host, defaults))).toMatchObject({
        code: 'unsupported_capability',
        message: 'sandbox.profile=linux_sandbox is unavailable: it broke. Mend it.',
      })
    }
  })

  test('a task that says adaptive is, whatever the service says', () => {
    const { capability_mode, degraded } = planTask(
      request({ sandbox: { profile: 'linux_sandbox' }, policy: adaptive }),
      host,
      STRICT,
    )
    expect({ capability_mode, degraded }).toEqual({ capability_mode: 'adaptive', degraded: true })
  })

  test('the process profile lacks nothing', () => {
    expect(planTask(request({ policy: strict }), host, ADAPTIVE).degraded).toBe(false)
  })
})

describe('on a host that can do only some of it', () => {
  const asks: SubmitTaskRequest = { sandbox: { profile: 'linux_sandbox' } }

  test('a task loses that and nothing else, one reason for each', () => {
    for (const lacking of ['mount', 'pid', 'uts', 'ipc', 'net'] as const) {
      const { effective_sandbox, fallback_reasons, degraded } = plan(asks, hostWithout(lacking))
      const { namespaces } = effective_sandbox
      expect([effective_sandbox.profile, degraded]).toEqual(['linux_sandbox', true])
      expect(NAMESPACES.filter((name) => namespaces?.[name])).toEqual(
        (['mount', 'pid', 'uts', 'ipc', 'net', 'user'] as const).filter((name) => name !== lacking),
      )
      expect(fallback_reasons).toEqual([
        `sandbox.namespaces.${lacking} is unavailable (it broke): the task shares ${lacking} with the host`,
      ])
    }
  })

  test('a missing filter is named, and a strict task refused for it', () => {
    const host = hostWithout('seccomp')
    expect(plan(asks, host).fallback_reasons).toEqual([
      'the system call filter of linux_sandbox is unavailable (it broke): the task may make any system call',
    ])
    expect(refusalOf(() => planTask(request(asks), host, STRICT)).message).toBe(
      'the system call filter of linux_sandbox is unavailable: it broke. Mend it.',
    )
    expect(planTask(request({}), host, STRICT).degraded).toBe(false)
  })

  test('a missing cgroup costs no namespace', () => {
    const { effective_sandbox, resource_enforcement } = plan(
      { ...asks, limits: { memory_bytes: 5, pids_max: 5 } },
      hostWithout('memory_cgroup', 'pids_cgroup'),
    )
    expect(effective_sandbox).toEqual(plan(asks).effective_sandbox)
    expect(resource_enforcement).toMatchObject({ memory_enforced: true, pids_enforced: false, cgroup_enforced: false })
  })

  test('without any namespace what is left is still a sandbox: another user without rights', () => {
    const { effective_sandbox, fallback_reasons } = plan(asks, hostWithout(...NAMESPACES))
    expect(effective_sandbox).toMatchObject({ profile: 'linux_sandbox', namespaces: { mount: false, user: false } })
    expect(fallback_reasons).toHaveLength(5)
  })

  test('a pid namespace without mounts may surprise', () => {
    const { capability_warnings } = plan({
      sandbox: { profile: 'linux_sandbox', namespaces: { mount: false } },
    })
    expect(capability_warnings).toEqual(['sandbox.namespaces.pid without mount: /proc shows the processes of the host'])
  })
})

describe('the network', () => {
  const sandboxed = (net?: boolean): SubmitTaskRequest => ({
    sandbox: { profile: 'linux_sandbox', ...(net !== undefined && { namespaces: { net } }) },
  })
  const OPEN: ServiceAccess = { runtime: 'open', control: 'unknown' }
  const ACCESSES = (['open', 'token'] as const).flatMap((runtime) =>
    CONTROL_ACCESS.map((control): [ServiceAccess] => [{ runtime, control }]),
  )
  const planWith = (access: ServiceAccess, parts: SubmitTaskRequest, host = hostWithout()) =>
    planTask(request(parts), host, { ...ADAPTIVE, access })

  const REACH = 'the task shares the network of the host: it can have a task without a sandbox run by'
  const FILE = '--token-file'

  test.each(ACCESSES)('is its own where the task does not say, and nothing is warned of: %j', (access) => {
    const made = planTask(request(sandboxed()), hostWithout(), { ...STRICT, access })
    expect(made.effective_sandbox.namespaces?.net).toBe(true)
    expect([made.degraded, made.capability_warnings]).toEqual([false, []])
    expect(planWith(access, {}).capability_warnings).toEqual([])
  })

  test('is that of the default of the service where the task does not say, but never of the other profile', () => {
    const settings: PlanSettings = { ...ADAPTIVE, network: 'host' }
    const made = (sandbox: object) => planTask(request({ sandbox }), hostWithout(), settings)
    const net = (sandbox: object) => made({ profile: 'linux_sandbox', ...sandbox }).effective_sandbox.namespaces?.net
    expect([net({}), net({ namespaces: { pid: true } })]).toEqual([false, false])
    expect([net({ network: 'none' }), net({ namespaces: { net: true } })]).toEqual([true, true])
    expect(made({ profile: 'linux_sandbox' }).requested_sandbox.namespaces?.net).toBe(false)
    expect(made({ namespaces: {} }).requested_sandbox.namespaces?.net).toBe(true)
  })

  test('with rules is what the plan says, in the normal form of the rules', () => {
    const made = (sandbox: object, host = hostWithout(), mode: object = {}) =>
      planTask(request({ sandbox: { profile: 'linux_sandbox', ...sandbox }, ...mode }), host, {
        ...ADAPTIVE,
        access: closed,
      })
    const network = (sandbox: object, host = hostWithout()) => made(sandbox, host).effective_sandbox.network
    const rules = { network: { allow: ['PyPI.org:443'], max_bytes: 9 } }
    const inForce = { allow: ['pypi.org:443'], deny: [], max_bytes: 9, max_connections: 256 }
    expect([network({}), network({ network: 'host' }), network(rules)]).toEqual(['none', 'host', inForce])
    expect(made(rules)).toMatchObject({
      degraded: false,
      capability_warnings: [],
      requested_sandbox: { network: inForce },
    })
    expect(made(rules, hostWithout('net'))).toMatchObject({
      ...{ degraded: true, effective_sandbox: { network: 'host', namespaces: { net: false } } },
      fallback_reasons: [
        expect.stringMatching(
          /^sandbox\.network with rules is unavailable .*: the task has the network of the host, without rules$/,
        ),
      ],
    })
    expect(made(rules, hostWithout('linux_sandbox'))).toMatchObject({
      effective_sandbox: { profile: 'process' },
      fallback_reasons: [expect.stringContaining('and without the rules of sandbox.network')],
    })
    const strictly = (sandbox: object, host = hostWithout()) =>
      refusalOf(() => made(sandbox, host, { policy: strict })).message
    expect(strictly(rules, hostWithout('net'))).toStartWith('sandbox.network with rules is unavailable: ')
    const withoutMounts = { ...rules, namespaces: { mount: false } }
    expect(strictly(withoutMounts)).toStartWith('sandbox.network with rules is unavailable: without a mount namespace')
    expect(made(withoutMounts).capability_warnings).toContainEqual(
      expect.stringContaining('sees the Unix sockets of the host'),
    )
  })

  test.each<[string[], Record<string, string>, boolean]>([
    [['127.0.0.1:80'], {}, true],
    [['127.0.0.0/8', 'a.example'], { NO_PROX: '' }, true],
    [['[::1]'], {}, true],
    [['127.0.0.1'], { no_proxy: '' }, false],
    [['127.0.0.1'], { NO_PROXY: 'x' }, false],
    [['10.0.0.1', 'localhost', '*'], {}, false],
  ])('with rules %j and variables %j: the loopback that programs skip is warned of: %p', (allow, env, isWarned) => {
    const made = planTask(
      request({
        execution: { kind: 'script', script: 'true', env },
        sandbox: { profile: 'linux_sandbox', network: { allow } },
      }),
      hostWithout(),
      ADAPTIVE,
    )
    expect(made.capability_warnings).toEqual(isWarned ? [expect.stringContaining('NO_PROXY')] : [])
  })

  test.each<[object, 'none' | 'host', string, string]>([
    [{ network: 'host' }, 'none', 'sandbox.network=host', 'set sandbox.network to none'],
    [{ network: 'host' }, 'host', 'sandbox.network=host', 'set sandbox.network to none'],
    [{}, 'host', '--default-network host', 'set sandbox.network to none'],
    [{ namespaces: { net: false } }, 'none', 'sandbox.namespaces.net=false', 'leave out sandbox.namespaces.net'],
    [
      ...([{ namespaces: { net: false } }, 'host' as const, 'sandbox.namespaces.net=false'] as const),
      'replace it: set sandbox.network to none',
    ],
  ])(
    'of the host by %j and the default %s: refusal and warning name %s, and how to undo it',
    (sandbox, network, what, undo) => {
      const asked = request({ sandbox: { profile: 'linux_sandbox', ...sandbox } })
      const settings = { ...ADAPTIVE, network, access: { runtime: 'open', control: 'token' } } as const
      expect(planTask(asked, hostWithout(), settings).capability_warnings).toEqual([
        `${REACH} this service, which has no token (${undo}, or start this service with ${FILE})`,
      ])
      const refusal = refusalOf(() => planTask(asked, hostWithout(), { ...settings, ...strict }))
      expect(refusal).toMatchObject({ code: 'unsupported_capability', details: { capability: what } })
      expect(refusal.message.toLowerCase()).toContain(`${what} is unavailable: `.toLowerCase())
      expect(refusal.message.toLowerCase()).toContain(`no token. ${undo}, or start`.toLowerCase())
      expect(planTask(asked, hostWithout(), { ...settings, ...strict, access: closed }).degraded).toBe(false)
    },
  )

  const warned = (who: string, how: string) => [`${REACH} ${who} (leave out sandbox.namespaces.net, or ${how})`]
  const OURS = 'this service, which has no token'
  const START_OURS = `start this service with ${FILE}`
  const ITS = 'the control service of this machine, which has no token'
  const START_ITS = `start taskmill-control with ${FILE}`
  const SOME = 'a control service of this machine that has no token'
  const START_SOME = `${START_ITS} and this service with SERVICE_CONTROL_ACCESS=token`
  test.each<[ServiceAccess, string[]]>([
    [{ runtime: 'token', control: 'token' }, []],
    [{ runtime: 'open', control: 'token' }, warned(OURS, START_OURS)],
    [{ runtime: 'token', control: 'open' }, warned(ITS, START_ITS)],
    [{ runtime: 'open', control: 'open' }, warned(`${OURS}, and ${ITS}`, `${START_OURS}, and ${START_ITS}`)],
    [{ runtime: 'open', control: 'unknown' }, warned(`${OURS}, and ${SOME}`, `${START_OURS}, and ${START_SOME}`)],
    [{ runtime: 'token', control: 'unknown' }, warned(SOME, START_SOME)],
  ])('of the host: the plan warns of %j', (access, warnings) => {
    const made = planWith(access, sandboxed(false))
    expect(made.effective_sandbox.namespaces?.net).toBe(false)
    expect([made.degraded, made.capability_warnings]).toEqual([false, warnings])
  })

  test.each(ACCESSES)('of the host is refused to a strict task where a service has no token: %j', (access) => {
    for (const [parts, mode] of [
      [{ ...sandboxed(false), policy: strict }, adaptive],
      [sandboxed(false), strict],
      [{ ...sandboxed(false), control_context: { requires_strict_sandbox: true } }, adaptive],
    ] as const) {
      const planned = () => planTask(request(parts), hostWithout(), { ...ADAPTIVE, ...mode, access })
      if (access.runtime === 'token' && access.control !== 'open') expect(planned().degraded).toBe(false)
      else {
        expect(refusalOf(planned)).toMatchObject({
          ...{ code: 'unsupported_capability', status: 400 },
          message: expect.stringMatching(
            /^sandbox\.namespaces\.net=false is unavailable: .*which has no token\. Leave out sandbox\.namespaces\.net, or start .*--token-file\.$/,
          ),
          details: { capability: 'sandbox.namespaces.net=false' },
        })
      }
    }
  })

  test('cannot be its own: an adaptive task shares it, with the reason and the warning; a strict one is refused', () => {
    const made = planWith(OPEN, sandboxed(), hostWithout('net'))
    expect(made.effective_sandbox.namespaces?.net).toBe(false)
    expect(made.fallback_reasons).toEqual([
      'sandbox.namespaces.net is unavailable (it broke): the task shares net with the host',
    ])
    expect(made.capability_warnings).toEqual([
      expect.stringMatching(/run by this service, which has no token, .* \(start this service with --token-file, /),
    ])
    expect(
      refusalOf(() => planTask(request(sandboxed()), hostWithout('net'), { ...STRICT, access: OPEN })).message,
    ).toBe('sandbox.namespaces.net is unavailable: it broke. Mend it.')
  })

  test('and the files of a user who is not root, the token of the service among them, are no more to be shared', () => {
    const parts = { sandbox: { profile: 'linux_sandbox', namespaces: { net: false, mount: false } } } as const
    const ofUser = { ...hostWithout(), isRoot: false }
    const read = 'this service, whose token file the task can read'
    expect(planWith(closed, parts, ofUser).capability_warnings).toContainEqual(expect.stringContaining(read))
    expect(refusalOf(() => planTask(request(parts), ofUser, STRICT)).message).toContain(read)
    expect(planTask(request(parts), hostWithout(), STRICT).degraded).toBe(false)
    // As root, only where every user can read the file.
    const access = { ...closed, isTokenFilePublic: true }
    expect(planWith(access, parts).capability_warnings).toContainEqual(expect.stringContaining('chmod 600 that file'))
    expect(refusalOf(() => planTask(request(parts), hostWithout(), { ...STRICT, access })).message).toContain(read)
    expect(planTask(request(sandboxed(false)), hostWithout(), { ...STRICT, access }).degraded).toBe(false)
  })

  test('may be its own, and the token of the service still not to be read: another task could use it', () => {
    const parts = { sandbox: { profile: 'linux_sandbox', namespaces: { mount: false } } } as const
    const ofUser = { ...hostWithout(), isRoot: false }
    const reads = 'the task can read the token file of this service'
    expect(planWith(closed, parts, ofUser).capability_warnings).toContainEqual(
      expect.stringMatching(new RegExp(`^${reads}.*\\(leave out sandbox\\.namespaces\\.mount\\)$`)),
    )
    const { code, message } = refusalOf(() => planTask(request(parts), ofUser, STRICT))
    expect([code, message]).toEqual([
      'unsupported_capability',
      expect.stringMatching(/^sandbox\.namespaces\.mount=false is unavailable: .*token.*\. Leave it out\.$/),
    ])
    const isPublic = { ...closed, isTokenFilePublic: true }
    expect(refusalOf(() => planTask(request(parts), hostWithout(), { ...STRICT, access: isPublic })).message).toEndWith(
      'Leave it out, or chmod 600 that file.',
    )
    // As root with a file of its own, without a token, or with mounts of its own there is nothing to read.
    for (const [host, access, asked] of [
      [hostWithout(), closed, parts],
      [ofUser, { runtime: 'open', control: 'token' }, parts],
      [ofUser, closed, sandboxed()],
      [ofUser, closed, {}],
    ] as const) {
      const plan = planTask(request(asked), host, { ...STRICT, access })
      expect(plan.capability_warnings.join()).not.toContain(reads)
    }
  })
})

describe('memory', () => {
  const asks: SubmitTaskRequest = { sandbox: { profile: 'linux_sandbox' }, limits: { memory_bytes: 5 } }

  test('is not limited where there is neither cgroup nor RLIMIT_AS', () => {
    for (const parts of [asks, { limits: asks.limits! }]) {
      const { resource_enforcement, fallback_reasons } = plan(parts, hostWithout('memory_cgroup', 'rlimit_memory'))
      expect(resource_enforcement).toMatchObject({ memory_bytes: 5, memory_enforced: false, oom_detection: false })
      expect(fallback_reasons).toEqual([expect.stringMatching(/: memory is not limited$/)])
    }
  })

  test('in the process profile needs no cgroup', () => {
    expect(plan({ limits: asks.limits! }, hostWithout('memory_cgroup')).degraded).toBe(false)
  })
})

describe('the processes of a sandbox that asks for no limit', () => {
  const sandboxed: SubmitTaskRequest = { sandbox: { profile: 'linux_sandbox' } }
  const limited: PlanSettings = { ...ADAPTIVE, default_limits: { pids_max: 7, disk_bytes: undefined } }

  test('are limited as the service has it, and nothing of that is reserved', () => {
    const task = request(sandboxed)
    const { resource_enforcement } = planTask(task, hostWithout(), limited)
    expect(resource_enforcement).toMatchObject({ pids_max: 7, pids_enforced: true, cgroup_enforced: true })
    expect(reservationFor(task.limits)).toEqual({ task_slots: 1 })
  })

  test('are not limited where there is no pids cgroup: that degrades and refuses nothing', () => {
    for (const mode of [adaptive, strict]) {
      const made = planTask(request(sandboxed), hostWithout('pids_cgroup'), { ...limited, ...mode })
      expect(made).toMatchObject({ degraded: false, fallback_reasons: [], capability_warnings: [] })
      expect(made.resource_enforcement).toMatchObject({ pids_max: 7, pids_enforced: false, cgroup_enforced: false })
    }
  })

  test.each<[string, SubmitTaskRequest, CapabilitySet, number | undefined]>([
    ['what the task asks for counts', { ...sandboxed, limits: { pids_max: 3 } }, hostWithout(), 3],
    ['more than that, too', { ...sandboxed, limits: { pids_max: 3_000 } }, hostWithout(), 3_000],
    ['the profile process has none', {}, hostWithout(), undefined],
    ['nor has what becomes of a sandbox there', sandboxed, hostWithout('linux_sandbox'), undefined],
  ])('%s', (_, parts, host, pids_max) => {
    const { resource_enforcement } = planTask(request(parts), host, limited)
    expect(resource_enforcement.pids_max).toBe(pids_max)
    expect(resource_enforcement.pids_enforced).toBe(pids_max !== undefined)
  })
})

describe('the user namespace', () => {
  const asking = (user?: boolean): SubmitTaskRequest => ({
    sandbox: { profile: 'linux_sandbox', namespaces: user === undefined ? {} : { user } },
  })

  test.each<[boolean | undefined, boolean, boolean, boolean]>([
    // asked for, the host has it, the service is root: what comes of it
    [undefined, true, true, true],
    [undefined, true, false, true],
    [undefined, false, true, false],
    [true, true, true, true],
    [true, false, true, false],
    [false, true, true, false],
    [false, true, false, true],
    [false, false, true, false],
  ])('asked for: %p, available: %p, root: %p: is %p', (asked, isAvailable, isRoot, own) => {
    const host = { ...hostWithout(...(isAvailable ? [] : (['user'] as const))), isRoot }
    const { effective_sandbox, degraded, capability_warnings } = plan(asking(asked), host)
    expect(effective_sandbox.namespaces?.user).toBe(own)
    expect(degraded).toBe(asked === true && !own)
    expect(capability_warnings).toHaveLength(asked === false && own ? 1 : 0)
  })
})

describe('on any host', () => {
  const withoutMode = (task: TaskRequest): TaskRequest => ({
    ...task,
    policy: {},
    control_context: { ...task.control_context, requires_strict_sandbox: false },
  })
  const anyTask = randomRequest.map((body) => withoutMode(read(body)))

  test('a strict task is refused exactly where an adaptive one does without, and else gets the same', () => {
    fc.assert(
      fc.property(anyTask, randomHost, (task, host) => {
        const flexible = planTask(task, host, ADAPTIVE)
        const rigid = () => planTask(task, host, STRICT)
        if (flexible.degraded) expect(refusalOf(rigid).code).toBe('unsupported_capability')
        else expect(rigid()).toEqual({ ...flexible, capability_mode: 'strict' })
      }),
      { numRuns: 1_000 },
    )
  })

  test('a plan is whole, promises nothing that the host lacks and nothing that was not asked for', () => {
    fc.assert(
      fc.property(anyTask, randomHost, (task, host) => {
        const before = structuredClone({ task, host })
        const made = planTask(task, host, ADAPTIVE)
        expect({ task, host }).toEqual(before)
        expect(Value.Check(ExecutionPlan, made)).toBe(true)
        expect(made.degraded).toBe(made.fallback_reasons.length > 0)
        expect(made.requested_sandbox).toEqual(requestedSandbox(task.sandbox, 'none'))
        const { effective_sandbox: effective, resource_enforcement: enforced } = made
        expect(effective.workspace_subdir).toBe(task.sandbox.workspace_subdir)
        expect(effective.chroot).toBe(effective.rootfs !== undefined)
        if (effective.profile === 'process') {
          expect([effective.chroot, effective.namespaces]).toEqual([false, undefined])
        } else {
          expect(task.sandbox.profile).toBe('linux_sandbox')
          expect(host.linux_sandbox.isAvailable).toBe(true)
        }
        if (effective.chroot) expect([task.sandbox.chroot, effective.namespaces?.mount]).toEqual([true, true])
        for (const name of NAMESPACES) {
          if (effective.namespaces?.[name]) expect(host.namespaces[name].isAvailable).toBe(true)
          if (effective.namespaces?.[name] && name !== 'user')
            expect(made.requested_sandbox.namespaces?.[name]).toBe(true)
        }
        expect(enforced.pids_enforced).toBe(task.limits.pids_max !== undefined && host.pids_cgroup.isAvailable)
        expect(enforced.cpu_time_enforced).toBe(task.limits.cpu_time_sec !== undefined && host.rlimit_cpu.isAvailable)
        if (enforced.oom_detection) {
          expect([enforced.memory_enforced, enforced.cgroup_enforced, effective.profile]).toEqual([
            true,
            true,
            'linux_sandbox',
          ])
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('a task that asks for nothing lacks nothing', () => {
    fc.assert(fc.property(randomHost, (host) => expect(planTask(read(COMMAND), host, STRICT).degraded).toBe(false)))
  })
})

/** `base` with the members of `changes` in their places. */
function merged(base: unknown, changes: unknown): unknown {
  if (typeof base !== 'object' || typeof changes !== 'object' || base === null || changes === null) return changes
  const result: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(changes)) result[key] = merged(result[key], value)
  return result
}
