/**
 * Goal: whatever a task does with its output, nothing of it reaches a log unmasked, and nothing else is lost.
 * Method: tasks write random streams in random pieces, end in every way, and leave processes behind; each launcher is compared
 * with the rule that looks at the whole stream.
 */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { withMaskVariables } from '../../../runtime/launch/mask-variables.ts'
import {
  describeLaunchers,
  type LaunchedTask,
  type LauncherVariant,
  type LaunchOptions,
  launch,
  shippedLauncher,
  taskEnv,
} from '../../support/launchers.ts'
import { maskedWhole } from '../../support/masked-whole.ts'
import { tempDir } from '../../support/temp.ts'

const SECRETS = ['sesame-one', 'sesame-two', 'one-sesame']

const sh = (script: string) => ['/bin/sh', '-c', script] as const

function masked(
  variant: LauncherVariant,
  command: LaunchOptions['command'],
  more: Partial<LaunchOptions> = {},
  texts: readonly string[] = SECRETS,
): LaunchedTask {
  const env = withMaskVariables(
    { ...taskEnv, S: SECRETS[0]!, ...more.env },
    texts.map((text) => Buffer.from(text)),
  )
  return launch(variant, { mask_count: texts.length, ...more, command, env })
}

/** Writes the pieces of the files `stdout.json` and `stderr.json` in its directory, one call each. */
const WRITE_PIECES = `
for my $i (0, 1) {
  open(my $in, '<', "pieces$i") or die;
  my $fd = $i == 0 ? *STDOUT : *STDERR;
  while (my $line = <$in>) { chomp $line; syswrite($fd, pack('H*', $line)) }
}`

describeLaunchers('masked output', (variant) => {
  test('is that of the plainest rule, for random texts and pieces', async () => {
    const word = (maxLength: number) => fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength })
    const run = fc.record({
      texts: fc.uniqueArray(word(7), { minLength: 1, maxLength: 6 }),
      streams: fc.tuple(fc.array(word(9), { maxLength: 60 }), fc.array(word(9), { maxLength: 60 })),
    })
    await fc.assert(
      fc.asyncProperty(run, async ({ texts, streams }) => {
        using dir = tempDir()
        for (const [i, pieces] of streams.entries()) {
          writeFileSync(
            join(dir.path, `pieces${i}`),
            pieces.map((piece) => `${Buffer.from(piece).toString('hex')}\n`).join(''),
          )
        }
        await using task = masked(variant, ['/usr/bin/perl', '-e', `chdir '${dir.path}'; ${WRITE_PIECES}`], {}, texts)
        const { ending, stdout_bytes } = await task.outcome()
        expect(ending).toEqual({ how: 'exited', exit_code: 0 })
        const expected = streams.map((pieces) => maskedWhole(texts, pieces.join('')))
        expect([task.stdout, task.file('stderr.log')]).toEqual(expected)
        expect(stdout_bytes).toBe(expected[0]!.length)
      }),
      { numRuns: variant.isPortable ? 8 : 30 },
    )
  })

  test.each<[string, string, string]>([
    ['in pieces', 'printf ses; sleep 0.05; printf ame-; sleep 0.05; printf "one\\n"', '***\n'],
    ['by a process that the task leaves behind', '(printf ses; printf ame-one; sleep 600) & sleep 0.2', '***'],
    ['through /dev/stdout', 'echo sesame-two > /dev/stdout', '***\n'],
    ['by a task that ends at its own signal', 'printf "x sesame-one y"; kill -9 $$', 'x *** y'],
    ['with an unfinished value at the end', 'printf sesame-on', 'sesame-on'],
    ['into a stream that it closes', 'printf sesame-one; exec >&-; sleep 0.1', '***'],
    ['on both streams together', 'exec 2>&1; printf sesame-; printf one >&2', '***'],
    ['from its environment, which has no texts to mask', 'env | grep -c TASKMILL_MASK_; printf "%s" "$S"', '0\n***'],
  ])('%s', async (_, script, expected) => {
    await using task = masked(variant, sh(script))
    await task.outcome()
    expect(task.stdout).toBe(expected)
  })

  test('shows what cannot be the beginning of a value at once, and nothing else', async () => {
    await using task = masked(variant, sh('echo sesame-one ready; printf sesame-; sleep 600'))
    expect(await task.printed('ready')).toBe('*** ready\n')
  })

  test('of many megabytes is complete, and passes without bound on memory', async () => {
    const script =
      'i=0; while [ $i -lt 40 ]; do head -c 500000 /dev/zero | tr "\\\\0" x; printf sesame-one; i=$((i+1)); done'
    await using task = masked(variant, sh(script))
    const { ending } = await task.outcome()
    expect(ending).toEqual({ how: 'exited', exit_code: 0 })
    expect(task.stdout === `${'x'.repeat(500_000)}***`.repeat(40)).toBe(true)
  })

  test('counts for the limit on output as it is kept', async () => {
    await using task = masked(variant, sh('while :; do echo sesame-one; done'), { max_output_bytes: 100_000 })
    expect((await task.outcome()).reason).toBe('output_limit')
    expect(task.stdout.slice(0, 12)).toBe('***\n***\n***\n')
    expect(task.stdout).not.toContain('sesame')
  })

  test.each<[string, Record<string, string>, number]>([
    ['fewer texts than announced', {}, 2],
    ['more texts than announced', { TASKMILL_MASK_7: '61' }, 1],
    ['a text that is not hexadecimal', { TASKMILL_MASK_0: '6g' }, 1],
    ['half a byte', { TASKMILL_MASK_0: '616' }, 1],
    ['an empty text', { TASKMILL_MASK_0: '' }, 1],
  ])('is refused before the task starts with %s', async (_, texts, mask_count) => {
    const env = { ...withMaskVariables(taskEnv, [Buffer.from('text')]), ...texts }
    await using task = launch(variant, { command: sh('echo started'), env, mask_count })
    const { ending } = await task.outcome()
    expect(ending).toMatchObject({ how: 'launch_failed', step: 'masks' })
    expect(task.stdout).toBe('')
  })
})

test('the launcher does not show the texts in its environment', async () => {
  await using task = masked(shippedLauncher, sh('echo ready; sleep 600'), { env: { S: '' } })
  await task.printed('ready')
  const shown = readFileSync(`/proc/${task.launcher.pid}/environ`, 'latin1')
  expect(shown).not.toContain(Buffer.from(SECRETS[0]!).toString('hex'))
})
