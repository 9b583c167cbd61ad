/**
 * The command line and the environment, read from one table of settings.
 *
 * citty parses. By itself it accepts unknown flags, reads `-name` as four letters and keeps only the last of repeated
 * flags, so `canonicalArgv` checks and respells the arguments first; both together take 1 to 2 ms of a start. Every
 * flag takes `--name value`, `--name=value` and Go's `-name value`, some also a letter; an unknown flag, a missing
 * value or a malformed one is a `UsageError` of one line. A flag beats its environment variable, which beats the
 * default. The same table gives `--help` and the tables of the documentation.
 */
import { parseArgs } from 'citty'
import { UsageError } from '../contract/errors.ts'
import { nearestName } from '../text/nearest-name.ts'
import { formatDuration, parseDurationMs } from './duration.ts'

/** A setting. `parse` turns its text into a `T`, or returns the expected form. */
export interface Setting<T> {
  readonly help: string
  readonly variable?: string
  /** A letter that is the flag, too: `o` for `-o`. */
  readonly letter?: string
  /** As written on the command line. Absent if there is none. */
  readonly default?: string
  /** The placeholder of the value in help texts: `host:port`, `bytes`, `duration`. Absent for a switch. */
  readonly value?: string
  /** Allowed values, in words. */
  readonly range?: string
  readonly isSwitch?: boolean
  readonly repeatable?: boolean
  /** Stands between the values of a repeated flag in the text that `parse` gets. Absent: a comma. */
  readonly separator?: string
  readonly parse: (text: string) => T | Expected
  /** The value when neither flag, variable nor default gives one. */
  readonly absent: T
}

/** The return value of `parse` for an invalid text. `what` completes the sentence `expected ...`. */
export class Expected {
  constructor(readonly what: string) {}
}

export type Settings = Readonly<Record<string, Setting<unknown>>>
export type SettingValues<S extends Settings> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never }

type Common = { help: string; variable?: string; letter?: string; range?: string }

export const text = (setting: Common & { default?: string; value: string }): Setting<string> => ({
  ...setting,
  parse: (given) => (given === '' ? new Expected('a value') : given),
  absent: '',
})

type IntegerSetting = Common & { value: string; min: number; max: number }

export const integer = (setting: IntegerSetting & { default: string }): Setting<number> => ({
  ...optionalInteger(setting),
  parse: integerIn(setting),
  absent: 0,
})

/** An integer without a default. Undefined if neither the flag nor the variable is given. */
export const optionalInteger = (setting: IntegerSetting): Setting<number | undefined> => ({
  ...setting,
  range: setting.range ?? `${setting.min} to ${setting.max}`,
  parse: integerIn(setting),
  absent: undefined,
})

const integerIn =
  ({ min, max }: IntegerSetting) =>
  (given: string): number | Expected => {
    const number = /^\d+$/.test(given) ? Number(given) : Number.NaN
    return number >= min && number <= max ? number : new Expected(`a whole number from ${min} to ${max}`)
  }

/** Milliseconds, written as `500ms`, `30s`, `2m` or `1h30m`. */
export const duration = (setting: Common & { default: string; minMs: number; maxMs: number }): Setting<number> => ({
  ...setting,
  value: 'duration',
  range: setting.range ?? `${formatDuration(setting.minMs)} to ${formatDuration(setting.maxMs)}`,
  parse: (given) => {
    const ms = parseDurationMs(given)
    const range = `${formatDuration(setting.minMs)} to ${formatDuration(setting.maxMs)}`
    return ms !== null && ms >= setting.minMs && ms <= setting.maxMs
      ? ms
      : new Expected(`a duration from ${range}, such as 500ms, 30s or 2m`)
  },
  absent: 0,
})

export const choice = <const C extends string>(
  setting: Common & { default: C; choices: readonly C[] },
): Setting<C> => ({
  ...setting,
  value: setting.choices.join('|'),
  parse: (given) =>
    (setting.choices as readonly string[]).includes(given) ? (given as C) : new Expected(setting.choices.join(' or ')),
  absent: setting.default,
})

/** A switch: `--name`, or `--name=false`. In variables, 1 and 0 are as common as true and false. */
export const flag = (setting: Common): Setting<boolean> => ({
  ...setting,
  isSwitch: true,
  parse: (given) => SWITCH_VALUES.get(given) ?? new Expected('true or false'),
  absent: false,
})

const SWITCH_VALUES: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
])

/** A list: the flag may be repeated, the variable holds a comma-separated list. */
export const list = (setting: Common & { value: string }): Setting<readonly string[]> => ({
  ...setting,
  repeatable: true,
  parse: (given) => {
    const parts = given.split(',').map((part) => part.trim())
    return parts.includes('') ? new Expected('a comma-separated list') : parts
  },
  absent: [],
})

/** A flag that may be repeated. Its values are the very texts that were given, commas included. */
export const texts = (setting: Omit<Common, 'variable'> & { value: string }): Setting<readonly string[]> => ({
  ...setting,
  repeatable: true,
  separator: BETWEEN_TEXTS,
  parse: (given) => given.split(BETWEEN_TEXTS),
  absent: [],
})

/** No argument of a program holds this character. */
const BETWEEN_TEXTS = '\0'

export interface CommandLine<S extends Settings> {
  readonly values: SettingValues<S>
  readonly positionals: readonly string[]
  /** The settings that a flag or a variable gives. */
  readonly given: ReadonlySet<keyof S>
  /** `--help` or `--version` was asked for; then nothing else was checked. */
  readonly asked?: 'help' | 'version'
}

/** `maxConcurrency` is the flag `--max-concurrency`. */
export const flagName = (key: string): string => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Reads `argv` and `env` by the table, or throws `UsageError`. */
export function readCommandLine<S extends Settings>(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  settings: S,
): CommandLine<S> {
  const { asked, canonical, names } = canonicalArgv(argv, settings)
  if (asked !== undefined) return { asked, values: {} as SettingValues<S>, positionals: [], given: new Set() }
  const parsed = parseArgs(canonical, cittyArgs(names))

  const values: Record<string, unknown> = {}
  const isGiven = new Set<keyof S>()
  for (const [key, setting] of Object.entries(settings)) {
    const name = flagName(key)
    const given = parsed[PREFIX + name] as string | undefined
    const variable = setting.variable === undefined ? undefined : env[setting.variable]
    if (given !== undefined || (variable !== undefined && variable !== '')) isGiven.add(key)
    if (given !== undefined) values[key] = settingValue(setting, given, `value "${given}" for --${name}`)
    else if (variable !== undefined && variable !== '') {
      values[key] = settingValue(setting, variable, `${setting.variable}="${variable}"`)
    } else {
      values[key] =
        setting.default === undefined ? setting.absent : settingValue(setting, setting.default, `default of --${name}`)
    }
  }
  return { values: values as SettingValues<S>, positionals: parsed._, given: isGiven }
}

function settingValue(setting: Setting<unknown>, given: string, what: string): unknown {
  const value = setting.parse(given)
  if (value instanceof Expected) throw new UsageError(`invalid ${what}: expected ${value.what}`)
  return value
}

/**
 * The given flags in citty's form, because citty spells each name it gets in several ways: that took 2 to 4 ms of the start of a
 * service with all of its fifty. Switches are strings: `--name=maybe` would be true for citty, and is refused here.
 */
const cittyArgs = (names: readonly string[]): Record<string, { readonly type: 'string' }> =>
  Object.fromEntries(names.map((name) => [PREFIX + name, { type: 'string' }]))

/** Before each name that citty gets: it reads --no-name as the opposite of --name. */
const PREFIX = 'flag-'

const FLAG = /^--?([A-Za-z][\w-]*)(?:=([\s\S]*))?$/

/** Flags that every program has. */
const ASKING = new Set(['help', 'h', 'version'])

interface CanonicalArgv {
  readonly asked: 'help' | 'version' | undefined
  /** `--flag-name=value` for each flag, then `--` and the other arguments. */
  readonly canonical: string[]
  /** The names of the given flags. */
  readonly names: readonly string[]
}

/** Checks the flags of `argv` and writes all of them in one way, for citty. */
function canonicalArgv(argv: readonly string[], settings: Settings): CanonicalArgv {
  const byName = new Map<string, { readonly fullName: string; readonly setting: Setting<unknown> }>()
  for (const [key, setting] of Object.entries(settings)) {
    const named = { fullName: flagName(key), setting }
    byName.set(named.fullName, named)
    if (setting.letter !== undefined) byName.set(setting.letter, named)
  }
  const flags = new Map<string, string[]>()
  const positionals: string[] = []
  let asked: 'help' | 'version' | undefined
  for (let i = 0; i < argv.length; i++) {
    const token = argv[i]!
    if (token === '--') {
      positionals.push(...argv.slice(i + 1))
      break
    }
    const match = FLAG.exec(token)
    if (match === null) {
      if (token.startsWith('-') && token !== '-') throw new UsageError(`unknown flag ${token} (see --help)`)
      positionals.push(token)
      continue
    }
    const name = match[1]!
    const inline = match[2]
    if (name === 'help' || name === 'h') asked = 'help'
    else if (name === 'version') asked ??= 'version'
    else {
      const named = byName.get(name)
      if (named === undefined) throw unknownFlag(token.replace(/=.*/s, ''), name, byName.keys())
      const { fullName, setting } = named
      let value = inline
      if (value === undefined && setting.isSwitch) value = 'true'
      if (value === undefined) {
        value = argv[++i]
        const next = value === undefined ? null : FLAG.exec(value)
        if (value === undefined || (next !== null && (byName.has(next[1]!) || ASKING.has(next[1]!)))) {
          throw new UsageError(`flag --${fullName} needs a value (${setting.value})`)
        }
      }
      flags.set(fullName, [...(flags.get(fullName) ?? []), value])
    }
  }
  const given = [...flags].map(([name, values]) => {
    const { repeatable, separator = ',' } = byName.get(name)!.setting
    const value = repeatable ? values.join(separator) : values.at(-1)
    return `--${PREFIX}${name}=${value}`
  })
  return { asked, canonical: [...given, '--', ...positionals], names: [...flags.keys()] }
}

function unknownFlag(flag: string, name: string, known: Iterable<string>): UsageError {
  const nearest = nearestName(name, [...known, 'help', 'version'])
  return new UsageError(`unknown flag ${flag} (${nearest === undefined ? 'see --help' : `did you mean --${nearest}?`})`)
}

/** The table as lines for `--help`: the flag, its sentence, then its variable, default and range. */
export function describeSettings(settings: Settings): string {
  return Object.entries(settings)
    .map(([key, setting]) => {
      const letter = setting.letter === undefined ? '' : `-${setting.letter}, `
      const head = `  ${letter}--${flagName(key)}${setting.value === undefined ? '' : ` <${setting.value}>`}`
      const notes = [
        setting.variable && `variable ${setting.variable}`,
        setting.default !== undefined && `default ${setting.default}`,
        setting.range,
        setting.repeatable && 'repeatable',
      ].filter(Boolean)
      return `${head}\n      ${setting.help}${notes.length > 0 ? `\n      [${notes.join('; ')}]` : ''}`
    })
    .join('\n')
}
