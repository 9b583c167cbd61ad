/**
 * Goal: what a service asks of a fork server is what a task gets, and nothing else is taken for a request. Method: arbitrary
 * strings, cut into arbitrary pieces, and shown by the task itself; and bytes that no service would write.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { launchRequest, MAX_REQUEST_BYTES } from '../../../runtime/launch/launch-request.ts'
import { BareForkServer } from '../../support/fork-servers.ts'
import { LauncherService } from '../../support/launcher-service.ts'
import { describeLaunchers, shippedLauncher } from '../../support/launchers.ts'

/** What a kernel takes; half a surrogate pair becomes what every encoder makes of it. */
const text = fc.string({ unit: 'binary' }).map((string) => string.replaceAll('\0', '').toWellFormed())
const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]*$/)

/** A program that shows its own arguments and environment, as the kernel has them. */
const SHOW = ['/bin/sh', '-c', 'cat /proc/$$/cmdline /proc/$$/environ', 'sh'] as const

test('arguments and environment arrive as they are', async () => {
  await using our = new LauncherService()
  let n = 0
  await fc.assert(
    fc.asyncProperty(fc.array(text), fc.dictionary(name, text), async (args, env) => {
      const given = { ...env, PATH: '/usr/bin:/bin' }
      const task = our.start(`task-${++n}`, [...SHOW, ...args], given)
      expect(await task.gone).toEqual({ exitCode: 0 })
      const variables = Object.entries(given).map(([name, value]) => `${name}=${value}`)
      const shown = [...SHOW, ...args, ...variables].map((string) => `${string}\0`).join('')
      expect(readFileSync(join(task.dir, 'stdout.log'), 'utf8')).toBe(shown)
    }),
    { numRuns: 60 },
  )
})

describe('a request', () => {
  test('is its strings, counted', () => {
    const request = launchRequest(0x01020304, ['ab', ''], { X: 'é' })
    expect('bytes' in request && [...request.bytes]).toEqual([
      ...[21, 0, 0, 0],
      ...[4, 3, 2, 1],
      ...[2, 0, 0, 0],
      ...[1, 0, 0, 0],
      ...Buffer.from('ab\0\0X=é\0'),
    ])
  })

  test('has a largest size', () => {
    const fits = 'x'.repeat(MAX_REQUEST_BYTES - 17)
    expect(launchRequest(1, [fits], {})).toHaveProperty('bytes')
    expect(launchRequest(1, [`${fits}x`], {})).toEqual({ code: 'E2BIG' })
    expect(launchRequest(1, [], { A: 'é'.repeat(MAX_REQUEST_BYTES / 2) })).toEqual({ code: 'E2BIG' })
  })

  test.each([
    ['an argument', ['a\0b'], {}],
    ['a value', [], { A: '\0' }],
    ['a name', [], { 'A\0': '' }],
  ])('is none with a NUL in %s', (_, argv, env) => {
    expect(launchRequest(1, argv, env)).toEqual({ code: 'ERR_INVALID_ARG_VALUE' })
  })
})

const numbers = (...all: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(4 * all.length)
  for (const [i, number] of all.entries()) bytes.writeUInt32LE(number, 4 * i)
  return bytes
}

const framed = (launch: number, counts: readonly [number, number], strings: string): Buffer => {
  const text = Buffer.from(strings)
  return Buffer.concat([numbers(12 + text.length, launch, ...counts), text])
}

describeLaunchers(
  'the fork server',
  (variant) => {
    test('takes requests however they are cut', async () => {
      await using forkServer = new BareForkServer(variant)
      const random = fc.sample(fc.integer({ min: 1, max: 700 }), { numRuns: 1_000, seed: 7 })
      const requests = Buffer.concat(
        Array.from({ length: 20 }, (_, i) => forkServer.request(`task-${i}`, ['/bin/true', 'x'.repeat(i * 50)], i)),
      )
      for (let at = 0; at < requests.length; ) {
        const end = at + random.pop()!
        forkServer.write(requests.subarray(at, end))
        at = end
      }
      const ends = (await forkServer.hears('gone', 20)).toSorted()
      expect(ends).toEqual(Array.from({ length: 20 }, (_, i) => `gone task-${i} ${i} 0`).toSorted())
    })

    test('takes one that is larger than all its buffers, and small ones around it', async () => {
      await using forkServer = new BareForkServer(variant)
      const large = Array.from({ length: 12 }, () => 'x'.repeat(100_000)) as [string, ...string[]]
      forkServer.write(
        forkServer.request('before', ['/bin/true'], 1),
        forkServer.request('large', ['/bin/sh', '-c', 'echo $#', ...large], 2),
        forkServer.request('after', ['/bin/true'], 3),
      )
      expect((await forkServer.hears('gone', 3)).toSorted()).toEqual([
        'gone after 3 0',
        'gone before 1 0',
        'gone large 2 0',
      ])
      expect(readFileSync(join(forkServer.dirOf('large'), 'stdout.log'), 'utf8')).toBe('11\n')
    })

    test.each([
      ['too short', numbers(11, 1, 0, 0), 'too short'],
      ['too long', numbers(MAX_REQUEST_BYTES + 1), 'too long'],
      ['more strings than bytes', framed(1, [5, 0], 'ab\0'), 'too few strings'],
      ['more variables than bytes', framed(1, [0, 2 ** 32 - 1], 'ab\0'), 'too few strings'],
      ['a string too few', framed(1, [2, 1], 'ab\0cd\0'), 'its strings are not as many as it says'],
      ['a string too many', framed(1, [1, 0], 'ab\0cd\0'), 'its strings are not as many as it says'],
      ['a string without an end', framed(1, [1, 1], 'ab\0cd'), 'its strings are not as many as it says'],
    ])('ends at a malformed request: %s', async (_, bytes, why) => {
      await using forkServer = new BareForkServer(variant)
      forkServer.write(bytes)
      expect(await forkServer.process.exited).toBe(125)
      expect(await forkServer.complaints).toBe(`taskmill-launcher: a malformed request: ${why}\n`)
    })

    test('ends at a request that names no task', async () => {
      await using forkServer = new BareForkServer(variant)
      forkServer.write(framed(1, [2, 0], '--task-id\0a b\0'))
      expect(await forkServer.process.exited).toBe(125)
      expect(await forkServer.complaints).toStartWith('taskmill-launcher: ')
    })

    test('outlives a request for a launcher whose arguments cannot be meant', async () => {
      await using forkServer = new BareForkServer(variant)
      forkServer.write(
        framed(7, [4, 0], '--task-id\0task-1\0--task-dir\0\0'),
        forkServer.request('task-2', ['/bin/true'], 8),
      )
      expect((await forkServer.hears('gone', 2)).toSorted()).toEqual(['gone task-1 7 125', 'gone task-2 8 0'])
      forkServer.process.stdin.end()
      expect(await forkServer.process.exited).toBe(0)
      expect(await forkServer.complaints).toBe('taskmill-launcher: an empty value: --task-dir\n')
    })
  },
  { isPortableIncluded: false },
)

test.each([[['--fork-server']], [['--fork-server', 'x']], [['--fork-server', '2']]])(
  '%p is no command line',
  async (argv) => {
    await using forkServer = new BareForkServer(shippedLauncher, { argv })
    expect(await forkServer.process.exited).toBe(125)
    expect(await forkServer.complaints).toBe('taskmill-launcher: --fork-server needs a descriptor\n')
  },
)
