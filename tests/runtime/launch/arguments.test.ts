/** Goal: a command line says exactly what the plan says. Method: arbitrary plans, read back by a reader of our own. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { TaskCgroup } from '../../../runtime/host/task-cgroups.ts'
import { launcherArguments, MAX_ARGUMENT } from '../../../runtime/launch/arguments.ts'
import type { LaunchPlan } from '../../../runtime/launch/plan.ts'
import { sandboxView } from '../../../runtime/launch/sandbox-view.ts'
import { SANDBOX_FEATURES } from '../../../runtime/plan/isolation.ts'

const MINIMAL: LaunchPlan = {
  task_id: 'task-1',
  task_dir: '/data/tasks/task-1',
  workdir: '/data/tasks/task-1/workspace',
  command: ['echo', 'hello'],
  wall_time_ms: 300_000,
  grace_ms: 5_000,
  max_output_bytes: 1_073_741_824,
}

const count = fc.integer({ min: 1, max: MAX_ARGUMENT })
const path = fc.string({ minLength: 1 }).filter((text) => !text.includes('\0'))
const place = path.map((text) => `/${text}`)
const cgroup: fc.Arbitrary<TaskCgroup> = fc.oneof(
  fc.record({ version: fc.constant(2 as const), path }),
  fc.record({ version: fc.constant(1 as const), pids_path: path, memory_path: path }, { requiredKeys: ['version'] }),
)
const sandbox = fc.record(
  {
    features: fc.subarray([...SANDBOX_FEATURES]),
    ...{ uid: count, rootfs: path, workspace: path, script: path },
    ...{ masks: fc.array(place), exposed: fc.array(place) },
  },
  { requiredKeys: ['features', 'masks', 'exposed'] },
)
const plan = fc.record(
  {
    task_id: fc.stringMatching(/^[A-Za-z0-9._-]{1,128}$/),
    task_dir: path,
    task_dir_id: fc.stringMatching(/^\d{1,19}:\d{1,19}$/),
    workdir: path,
    stdin: path,
    command: fc.tuple(path, fc.array(fc.string())).map(([program, args]): [string, ...string[]] => [program, ...args]),
    wall_time_ms: count,
    grace_ms: fc.nat(),
    give_up_ms: fc.nat(),
    max_output_bytes: count,
    disk_bytes: count,
    cpu_time_sec: count,
    address_space_bytes: count,
    cgroup,
    sandbox,
    egress: fc.record({ socket: place, port: fc.integer({ min: 1, max: 65_535 }) }),
    memory_max: count,
    pids_max: count,
  },
  { requiredKeys: ['task_id', 'task_dir', 'workdir', 'command', 'wall_time_ms', 'grace_ms', 'max_output_bytes'] },
)

/** Words of a mount after the name of its operation, as in mount-list.c. */
const OPERANDS: Readonly<Record<string, number>> = {
  ...{ freeze: 1, tmpfs: 2, dir: 2, symlink: 2, devpts: 2, mountpoint: 2, remount: 2, bind: 4, 'bind-try': 4, mask: 2 },
  ...{ allow: 1, proc: 1, 'bind-entries': 3, pivot: 1 },
}

/** A plan from its command line: flags are its keys with dashes. */
function readBack(argv: readonly string[]): Record<string, unknown> {
  const given = new Map<string, string>()
  const mounts: string[][] = []
  let i = 0
  for (; argv[i] !== '--'; i += 2) {
    const key = argv[i]!.replace(/^--/, '').replaceAll('-', '_')
    if (key === 'mount') {
      const words = 1 + OPERANDS[argv[i + 1]!]!
      mounts.push(argv.slice(i + 1, i + 1 + words))
      i += words - 1
      continue
    }
    expect(given.has(key)).toBe(false)
    given.set(key, argv[i + 1]!)
  }
  const texts = new Set(['task_id', 'task_dir', 'task_dir_id', 'workdir', 'stdin', 'egress_socket'])
  const groups = ['cgroup_v2', 'cgroup_v1_pids', 'cgroup_v1_memory'].map((key) => {
    const value = given.get(key)
    given.delete(key)
    return value
  })
  const fence = ['', '_uid'].map((part) => {
    const value = given.get(`sandbox${part}`)
    given.delete(`sandbox${part}`)
    return value
  })
  return {
    fence: [...fence, mounts],
    ...Object.fromEntries([...given].map(([key, value]) => [key, texts.has(key) ? value : Number(value)])),
    command: argv.slice(i + 1),
    groups,
  }
}

/** What `readBack` makes of it. */
function expected({ cgroup, sandbox, egress, ...rest }: LaunchPlan): Record<string, unknown> {
  const { features, uid, ...paths } = sandbox ?? {}
  const names = features === undefined ? undefined : features.join(',') || 'none'
  const mounts = features?.includes('mount') ? sandboxView(paths, features.includes('pid')) : []
  const fence = [names, uid === undefined ? uid : String(uid), mounts]
  const groups =
    cgroup?.version === 2 ? [cgroup.path, undefined, undefined] : [undefined, cgroup?.pids_path, cgroup?.memory_path]
  const way = egress && { egress_socket: egress.socket, egress_port: egress.port }
  return { ...rest, ...way, groups, fence }
}

describe('the arguments of a launcher', () => {
  test('are the plan, whatever it holds', () => {
    fc.assert(fc.property(plan, (given) => expect(readBack(launcherArguments(given))).toEqual(expected(given))))
  })

  test('name the descriptors that go with it', () => {
    expect(launcherArguments(MINIMAL, { lock_fd: 3, notify_fd: 4 })).toEqual([
      ...['--task-id', 'task-1', '--task-dir', '/data/tasks/task-1', '--workdir', '/data/tasks/task-1/workspace'],
      ...['--wall-time-ms', '300000', '--grace-ms', '5000', '--max-output-bytes', '1073741824'],
      ...['--lock-fd', '3', '--notify-fd', '4', '--', 'echo', 'hello'],
    ])
  })

  test('are whole numbers in plain digits, never tighter than the plan', () => {
    const argv = launcherArguments({ ...MINIMAL, wall_time_ms: 0.1, cpu_time_sec: 1.5, max_output_bytes: 1e300 })
    expect(argv.join(' ')).toContain(
      `--wall-time-ms 1 --grace-ms 5000 --max-output-bytes ${MAX_ARGUMENT} --cpu-time-sec 2 `,
    )
  })
})
