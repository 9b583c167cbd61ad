/** Parses the command line of a launcher into a plan. Pure. The same rules as in arguments.c, without cgroups. */
import { MAX_ARGUMENT } from '../launch/arguments.ts'
import type { LaunchDescriptors, LaunchPlan } from '../launch/plan.ts'

export interface LaunchOrder {
  readonly plan: LaunchPlan
  readonly descriptors: LaunchDescriptors
}

/** Why a command line is wrong, in one line. */
export class Complaint extends Error {}

const REQUIRED_TEXTS = ['--task-id', '--task-dir', '--workdir'] as const
const TEXTS: readonly string[] = [...REQUIRED_TEXTS, '--task-dir-id', '--stdin']

/** Options with a number: the least value, and whether it is required. */
const NUMBERS = {
  '--wall-time-ms': { min: 1, isRequired: true },
  '--grace-ms': { min: 0, isRequired: true },
  '--give-up-ms': { min: 0, isRequired: false },
  '--max-output-bytes': { min: 1, isRequired: true },
  '--disk-bytes': { min: 1, isRequired: false },
  '--mask-count': { min: 1, isRequired: false },
  '--cpu-time-sec': { min: 1, isRequired: false },
  '--address-space-bytes': { min: 1, isRequired: false },
  '--lock-fd': { min: 3, isRequired: false },
  '--notify-fd': { min: 3, isRequired: false },
} as const

type NumberFlag = keyof typeof NUMBERS

export function parseArguments(argv: readonly string[]): LaunchOrder {
  const given = new Map<string, string>()
  let at = 0
  for (; at < argv.length && argv[at] !== '--'; at += 2) {
    const flag = argv[at]!
    const value = argv[at + 1]
    if (!isText(flag) && !isNumber(flag)) throw new Complaint(`unknown argument: ${flag}`)
    if (value === undefined) throw new Complaint(`without a value: ${flag}`)
    if (given.has(flag)) throw new Complaint(`given twice: ${flag}`)
    if (isText(flag) && value === '') throw new Complaint(`an empty value: ${flag}`)
    if (isNumber(flag)) check(flag, value)
    given.set(flag, value)
  }
  for (const flag of REQUIRED_TEXTS) if (!given.has(flag)) throw new Complaint(`missing: ${flag}`)
  for (const [flag, { isRequired }] of Object.entries(NUMBERS)) {
    if (isRequired && !given.has(flag)) throw new Complaint(`missing: ${flag}`)
  }
  const [program, ...args] = argv.slice(at + 1)
  if (program === undefined) throw new Complaint('missing: -- PROGRAM ARGS...')
  return orderOf(given, [program, ...args])
}

function orderOf(given: ReadonlyMap<string, string>, command: LaunchPlan['command']): LaunchOrder {
  const task_id = given.get('--task-id')!
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(task_id)) {
    throw new Complaint('--task-id must be 1 to 128 letters, digits, -, _ or .')
  }
  const number = (flag: NumberFlag) => Number(given.get(flag))
  const optional = <K extends string>(key: K, flag: NumberFlag) =>
    (given.has(flag) ? { [key]: number(flag) } : {}) as { [P in K]?: number }
  return {
    plan: {
      task_id,
      task_dir: given.get('--task-dir')!,
      ...(given.has('--task-dir-id') && { task_dir_id: given.get('--task-dir-id')! }),
      workdir: given.get('--workdir')!,
      ...(given.has('--stdin') && { stdin: given.get('--stdin')! }),
      command,
      wall_time_ms: number('--wall-time-ms'),
      grace_ms: number('--grace-ms'),
      max_output_bytes: number('--max-output-bytes'),
      ...optional('give_up_ms', '--give-up-ms'),
      ...optional('disk_bytes', '--disk-bytes'),
      ...optional('mask_count', '--mask-count'),
      ...optional('cpu_time_sec', '--cpu-time-sec'),
      ...optional('address_space_bytes', '--address-space-bytes'),
    },
    descriptors: {
      ...optional('lock_fd', '--lock-fd'),
      ...optional('notify_fd', '--notify-fd'),
    },
  }
}

const isText = (flag: string): boolean => TEXTS.includes(flag)

const isNumber = (flag: string): flag is NumberFlag => Object.hasOwn(NUMBERS, flag)

function check(flag: NumberFlag, value: string): void {
  const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN
  if (!(number >= NUMBERS[flag].min && number <= MAX_ARGUMENT)) {
    throw new Complaint(`not a number that is possible: ${flag}`)
  }
}
