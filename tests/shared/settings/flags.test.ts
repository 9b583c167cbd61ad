/**
 * Goal: a flag, a variable and a default mean what the table of settings says, and mistakes are one line with a remedy.
 * Method: a small table of every kind of setting, examples in rows, random values in every way to write a flag.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { UsageError } from '../../../shared/contract/errors.ts'
import {
  choice,
  describeSettings,
  duration,
  flag,
  flagName,
  integer,
  list,
  optionalInteger,
  readCommandLine,
  text,
  texts,
} from '../../../shared/settings/flags.ts'

const verbose = flag({ help: 'Say more.', letter: 'v' })

const settings = {
  addr: text({ variable: 'X_ADDR', default: '127.0.0.1:8080', value: 'host:port', help: 'Address to listen on.' }),
  fileRoot: text({ variable: 'X_FILE_ROOT', value: 'directory', help: 'Where files are.' }),
  maxConcurrency: integer({ variable: 'X_MAX', default: '10', value: 'number', min: 1, max: 500, help: 'At once.' }),
  killGrace: duration({ variable: 'X_GRACE', default: '2s', minMs: 0, maxMs: 600_000, help: 'TERM to KILL.' }),
  logLevel: choice({ variable: 'X_LEVEL', default: 'info', choices: ['debug', 'info', 'warn'], help: 'Least severe.' }),
  capacity: optionalInteger({ variable: 'X_CAPACITY', value: 'bytes', min: 1, max: 1_000, help: 'How much.' }),
  allowedHost: list({ variable: 'X_HOSTS', value: 'host', help: 'Another name for us.' }),
  verbose,
}

const DEFAULTS = {
  addr: '127.0.0.1:8080',
  fileRoot: '',
  maxConcurrency: 10,
  killGrace: 2_000,
  logLevel: 'info',
  capacity: undefined,
  allowedHost: [],
  verbose: false,
}

const read = (argv: readonly string[], env: Record<string, string> = {}) => readCommandLine(argv, env, settings)
const valuesOf = (argv: readonly string[], env: Record<string, string> = {}) =>
  read(argv, env).values as typeof DEFAULTS

/** The message of the `UsageError` that `argv` brings about. */
function mistakeIn(argv: readonly string[], env: Record<string, string> = {}): string {
  try {
    read(argv, env)
  } catch (error) {
    if (error instanceof UsageError) return error.message
    throw error
  }
  throw new Error(`${JSON.stringify(argv)} was accepted`)
}

describe('the values', () => {
  test('are the defaults where nothing is said', () => {
    expect(valuesOf([])).toEqual(DEFAULTS)
  })

  test.each<[string[], Partial<Record<keyof typeof DEFAULTS, unknown>>]>([
    [['--addr', ':9'], { addr: ':9' }],
    [['--addr=:9'], { addr: ':9' }],
    [['-addr', ':9'], { addr: ':9' }],
    [['-addr=:9'], { addr: ':9' }],
    [['--addr=a=b'], { addr: 'a=b' }],
    [['--addr', '-'], { addr: '-' }],
    [['--addr', '--not-a-flag-of-ours'], { addr: '--not-a-flag-of-ours' }],
    [['--addr', 'first', '--addr', 'last'], { addr: 'last' }],
    [['--file-root', '/srv'], { fileRoot: '/srv' }],
    [['--max-concurrency', '1'], { maxConcurrency: 1 }],
    [['--max-concurrency=500'], { maxConcurrency: 500 }],
    [['--kill-grace=0'], { killGrace: 0 }],
    [['--kill-grace', '1m30s'], { killGrace: 90_000 }],
    [['--log-level', 'debug'], { logLevel: 'debug' }],
    [['--capacity', '1000'], { capacity: 1_000 }],
    [['--allowed-host', 'a', '--allowed-host=b, c'], { allowedHost: ['a', 'b', 'c'] }],
    [['--verbose'], { verbose: true }],
    [['--verbose=false'], { verbose: false }],
    [['--verbose=1'], { verbose: true }],
    [['--verbose=0'], { verbose: false }],
    [['--verbose', '--addr', ':9'], { verbose: true, addr: ':9' }],
  ])('of %j differ from the defaults in %j', (argv, changed) => {
    expect(valuesOf(argv)).toEqual({ ...DEFAULTS, ...changed } as typeof DEFAULTS)
  })

  test('come from the flag before the variable, from the variable before the default', () => {
    const env = { X_ADDR: ':1', X_MAX: '2', X_GRACE: '3s', X_LEVEL: 'warn', X_HOSTS: 'a,b' }
    expect(valuesOf([], env)).toMatchObject({
      addr: ':1',
      maxConcurrency: 2,
      killGrace: 3_000,
      logLevel: 'warn',
      allowedHost: ['a', 'b'],
    })
    const argv = ['--addr=:4', '--max-concurrency=5', '--kill-grace=6s', '--log-level=debug', '--allowed-host=c']
    expect(valuesOf(argv, env)).toMatchObject({
      addr: ':4',
      maxConcurrency: 5,
      killGrace: 6_000,
      logLevel: 'debug',
      allowedHost: ['c'],
    })
  })

  test('take an empty variable for none', () => {
    expect(valuesOf([], { X_ADDR: '', X_MAX: '', X_HOSTS: '' })).toEqual(DEFAULTS)
  })

  test('of a malformed variable are not looked at where a flag beats it', () => {
    expect(valuesOf(['--max-concurrency=3'], { X_MAX: 'many' }).maxConcurrency).toBe(3)
  })

  test('are the very texts that were given, whatever is in them', () => {
    const given = fc.string({ unit: 'binary', minLength: 1 })
    fc.assert(
      fc.property(given, fc.constantFrom('--addr', '-addr'), (value, flag) => {
        expect(valuesOf([`${flag}=${value}`]).addr).toBe(value)
      }),
    )
    fc.assert(
      fc.property(
        given.filter((value) => !value.startsWith('-')),
        fc.constantFrom('--addr', '-addr'),
        (value, flag) => {
          expect(valuesOf([flag, value]).addr).toBe(value)
          expect(valuesOf([], { X_ADDR: value }).addr).toBe(value)
        },
      ),
    )
  })
})

test('texts are the very texts of each flag, commas included', () => {
  const settings = { set: texts({ value: 'name=value', help: '' }) }
  const read = (...argv: string[]) => readCommandLine(argv, {}, settings).values.set
  expect(read()).toEqual([])
  expect(read('--set', 'a=1,2', '--set=b= c\n', '--set', '')).toEqual(['a=1,2', 'b= c\n', ''])
})

describe('a letter', () => {
  test('is the flag, with its value in any form', () => {
    expect(valuesOf(['-v']).verbose).toBe(true)
    expect(valuesOf(['-v=false', '--v']).verbose).toBe(true)
    expect(readCommandLine(['-o', 'a', '-o=b', 'c'], {}, { out: text({ letter: 'o', value: 'x', help: '' }) })).toEqual(
      { values: { out: 'b' }, positionals: ['c'], given: new Set(['out'] as const) },
    )
  })

  test('needs a value as the flag does', () => {
    const settings = { out: text({ letter: 'o', value: 'x', help: '' }) }
    expect(() => readCommandLine(['-o'], {}, settings)).toThrow('flag --out needs a value (x)')
  })
})

describe('a mistake', () => {
  test.each<[string[], string]>([
    [['--bogus'], 'unknown flag --bogus (see --help)'],
    [['-bogus=1'], 'unknown flag -bogus (see --help)'],
    [['-f', 'g.json'], 'unknown flag -f (see --help)'],
    [['--fileRoot', '/'], 'unknown flag --fileRoot (did you mean --file-root?)'],
    [['--no-verbose'], 'unknown flag --no-verbose (did you mean --verbose?)'],
    [['--max-concurency', '3'], 'unknown flag --max-concurency (did you mean --max-concurrency?)'],
    [['-1'], 'unknown flag -1 (see --help)'],
    [['---addr'], 'unknown flag ---addr (see --help)'],
    [['--addr'], 'flag --addr needs a value (host:port)'],
    [['--addr', '--kill-grace', '2s'], 'flag --addr needs a value (host:port)'],
    [['--addr', '-kill-grace=2s'], 'flag --addr needs a value (host:port)'],
    [['--addr='], 'invalid value "" for --addr: expected a value'],
    [['--capacity=0'], 'invalid value "0" for --capacity: expected a whole number from 1 to 1000'],
    [['--max-concurrency', '0'], 'invalid value "0" for --max-concurrency: expected a whole number from 1 to 500'],
    [['--max-concurrency=501'], 'invalid value "501" for --max-concurrency: expected a whole number from 1 to 500'],
    [['--max-concurrency=-1'], 'invalid value "-1" for --max-concurrency: expected a whole number from 1 to 500'],
    [['--max-concurrency', '1.5'], 'invalid value "1.5" for --max-concurrency: expected a whole number from 1 to 500'],
    [['--max-concurrency', '1e1'], 'invalid value "1e1" for --max-concurrency: expected a whole number from 1 to 500'],
    [
      ['--kill-grace', '5'],
      'invalid value "5" for --kill-grace: expected a duration from 0s to 10m, such as 500ms, 30s or 2m',
    ],
    [
      ['--kill-grace', '601s'],
      'invalid value "601s" for --kill-grace: expected a duration from 0s to 10m, such as 500ms, 30s or 2m',
    ],
    [['--log-level', 'loud'], 'invalid value "loud" for --log-level: expected debug or info or warn'],
    ...['maybe', '2', ''].map((value): [string[], string] => [
      [`--verbose=${value}`],
      `invalid value "${value}" for --verbose: expected true or false`,
    ]),
    [['--allowed-host', 'a,,b'], 'invalid value "a,,b" for --allowed-host: expected a comma-separated list'],
    [
      ['--allowed-host', 'a', '--allowed-host='],
      'invalid value "a," for --allowed-host: expected a comma-separated list',
    ],
  ])('in %j is told as %j', (argv, message) => {
    expect(mistakeIn(argv)).toBe(message)
  })

  test('in a variable names the variable', () => {
    expect(mistakeIn([], { X_MAX: 'many' })).toBe('invalid X_MAX="many": expected a whole number from 1 to 500')
  })

  test('is told in one line, whatever was given', () => {
    const odd = fc.constantFrom('a\nb', '--addr\n', '-\n', '--max-concurrency=1\n2', '--bogus\r\n')
    fc.assert(
      fc.property(
        fc.array(fc.oneof(odd, fc.constantFrom('--max-concurrency', '--log-level')), { maxLength: 4 }),
        (argv) => {
          try {
            read(argv)
          } catch (error) {
            if (!(error instanceof UsageError)) throw error
            expect(error.message).not.toMatch(/[\n\r]/)
          }
        },
      ),
    )
  })

  test('is a flag that help or version stands in for the value of', () => {
    expect(mistakeIn(['--addr', '--help'])).toBe('flag --addr needs a value (host:port)')
    expect(mistakeIn(['--addr', '--version'])).toBe('flag --addr needs a value (host:port)')
  })
})

test('a switch whose name begins with no- is no opposite of another one', () => {
  const { values, given } = readCommandLine(
    ['--no-token'],
    {},
    {
      noToken: flag({ help: 'None.' }),
      token: text({ value: 'token', help: 'One.' }),
    },
  )
  expect([values, [...given]]).toEqual([{ noToken: true, token: '' }, ['noToken']])
})

test('a setting is given by its flag or by its variable, not by its default', () => {
  const settings = {
    first: text({ value: 'x', help: '', default: 'a', variable: 'FIRST' }),
    second: text({ value: 'x', help: '', default: 'a', variable: 'SECOND' }),
    third: text({ value: 'x', help: '', default: 'a', variable: 'THIRD' }),
  }
  const { given } = readCommandLine(['--first', 'a'], { SECOND: 'a', THIRD: '' }, settings)
  expect(given).toEqual(new Set(['first', 'second'] as const))
})

describe('arguments', () => {
  test('that are no flags are kept in order, and all after two dashes', () => {
    expect(read(['a', '--addr', ':9', '-', 'b', '--verbose', 'c', '--', '--addr', '-x', '--help'])).toMatchObject({
      positionals: ['a', '-', 'b', 'c', '--addr', '-x', '--help'],
      values: { addr: ':9', verbose: true },
    })
  })

  test.each<[string[], 'help' | 'version']>([
    [['--help'], 'help'],
    [['-h'], 'help'],
    [['-help'], 'help'],
    [['--version'], 'version'],
    [['-version'], 'version'],
    [['--version', '--help'], 'help'],
    [['--help', '--version'], 'help'],
    [['--max-concurrency', 'many', '--help'], 'help'],
    [['--version', '--log-level=loud'], 'version'],
  ])('%j ask for %s, and no value is checked', (argv, asked) => {
    expect(read(argv, { X_MAX: 'many' }).asked).toBe(asked)
  })
})

describe('the table', () => {
  test('gives flags their names', () => {
    expect(['addr', 'maxConcurrency', 'defaultCapabilityMode'].map(flagName)).toEqual([
      'addr',
      'max-concurrency',
      'default-capability-mode',
    ])
  })

  test('describes every setting with its variable, default and range', () => {
    expect(describeSettings(settings).split('\n')).toEqual([
      '  --addr <host:port>',
      '      Address to listen on.',
      '      [variable X_ADDR; default 127.0.0.1:8080]',
      '  --file-root <directory>',
      '      Where files are.',
      '      [variable X_FILE_ROOT]',
      '  --max-concurrency <number>',
      '      At once.',
      '      [variable X_MAX; default 10; 1 to 500]',
      '  --kill-grace <duration>',
      '      TERM to KILL.',
      '      [variable X_GRACE; default 2s; 0s to 10m]',
      '  --log-level <debug|info|warn>',
      '      Least severe.',
      '      [variable X_LEVEL; default info]',
      '  --capacity <bytes>',
      '      How much.',
      '      [variable X_CAPACITY; 1 to 1000]',
      '  --allowed-host <host>',
      '      Another name for us.',
      '      [variable X_HOSTS; repeatable]',
      '  -v, --verbose',
      '      Say more.',
    ])
  })
})
