/**
 * Goal: what a task prints of its secrets is masked wherever somebody can read it, also while the task runs, after the value
 * has changed, and after a kill of the service.
 * Method: tasks print values whole, in pieces and encoded; answers and streams are read while they do.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Pair, startPair } from '../support/pair.ts'
import { startRuntime } from '../support/runtime.ts'
import { script, waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const VALUE = 'p/ss w+rd?"1\\'
const OTHER = 'another-value'

let temp: TempDir
let dir: string
let pair: Pair
const put = (name: string, value: string) => {
  writeFileSync(join(temp.path, 'new'), value, { mode: 0o600 })
  renameSync(join(temp.path, 'new'), join(dir, name))
}

beforeAll(async () => {
  temp = tempDir()
  dir = join(temp.path, 'secrets')
  mkdirSync(dir, { mode: 0o700 })
  put('token', `${VALUE}\n`)
  put('other', OTHER)
  put('short', 'abc')
  put('key', '-----BEGIN KEY-----\n  first-line-of-key\nxyz\nsecond-line-of-key\n')
  const flags = ['--secrets-dir', dir]
  pair = await startPair({ controlFlags: flags, runtimeFlags: flags, controlEnv: { SERVICE_SHELL_POLICY: 'open' } })
})
afterAll(async () => {
  await pair[Symbol.asyncDispose]()
  temp[Symbol.dispose]()
})

const PERL = `perl -MJSON::PP -e 'print JSON::PP->new->encode([$ENV{TOKEN}]); (my $u = $ENV{TOKEN}) =~ s/([^A-Za-z0-9_.~-])/sprintf("%%%02X", ord $1)/ge; print $u'`
const PRINT = `printf '%s|' "$TOKEN"; printf '%s' "$TOKEN" | base64 -w0; printf '|'; printf 'user:%s' "$TOKEN" | base64 -w0; printf '|'; ${PERL}; printf '|%s\\n' "$TOKEN" >&2`

describe('what a task prints of its secrets is masked', () => {
  const FORMS = /^\*\*\*\|\*\*\*(?:==?)?\|dXNlcjp?.?\*\*\*(?:==?)?\|\["\*\*\*"\]\*\*\*$/

  test.each(['shell', 'cli-skills', 'runtime.script'])('in the result of a task of type %s', async (type) => {
    const params = type === 'cli-skills' ? { command: '/bin/sh', args: ['-c', PRINT] } : { script: PRINT }
    const record = await pair.control.run({ type, params, secrets: { TOKEN: 'token' } })
    expect(record.status).toBe('success')
    const { stdout, stderr, output } = record.result as Record<string, string>
    if (type === 'cli-skills') expect(output).toEndWith('|***\n')
    else expect([stdout, stderr]).toEqual([expect.stringMatching(FORMS), '|***\n'])
    expect(JSON.stringify(record)).not.toContain(JSON.stringify(VALUE).slice(1, -1))
  })

  test.each(['shell', 'runtime.script'])('in the tail of a failed task of type %s', async (type) => {
    const params = { script: 'printf "cannot use %s\\n" "$TOKEN" >&2; exit 3' }
    const record = await pair.control.run({ type, params, secrets: { TOKEN: 'token' } })
    expect(record.status).toBe('failed')
    expect(JSON.stringify(record)).toContain('cannot use ***')
    expect(JSON.stringify(record)).not.toContain(VALUE.slice(0, 8))
  })

  test.each(['shell', 'runtime.script'])('while a task of type %s runs, and prints it in pieces', async (type) => {
    const go = join(temp.path, `go-${type}`)
    const halves = 'printf "%s" "$A"; sleep 0.1; printf "%s\\n" "$B"'
    const cut = `A=$(printf %s "$OTHER" | cut -c1-5); B=$(printf %s "$OTHER" | cut -c6-)`
    const task = {
      id: `live-${type}`,
      type,
      params: { script: `${cut}; ${halves}; ${waitFor(go)}` },
      secrets: { OTHER: 'other' },
    }
    await pair.control.submit([task])
    const logs = await until(
      async () => await (await pair.control.fetch(`/tasks/${task.id}/logs`)).text(),
      (text) => text.includes('***'),
    )
    expect(logs).not.toContain('anoth')
    writeFileSync(go, '')
    expect(await pair.control.ended(task.id)).toMatchObject({ status: 'success', result: { stdout: '***\n' } })
  })

  test('with each line of it, in a file, too; a short one is not', async () => {
    const { stdout } = await pair.runtime.run({
      ...script('tail -n1 "$KEY"; head -n2 "$KEY" | tail -n1; cat "$KEY"; echo; echo "$SHORT"'),
      secrets: { KEY: { name: 'key', file: 'key' }, SHORT: 'short' },
    })
    expect(stdout).toBe('***\n  ***\n***\n\nabc\n')
  })

  test('unless the request says otherwise', async () => {
    const secrets = { OTHER: { name: 'other', mask: false }, TOKEN: 'token' }
    const { stdout } = await pair.runtime.run({ ...script('echo "$OTHER $TOKEN"'), secrets })
    expect(stdout).toBe(`${OTHER} ***\n`)
    const record = await pair.control.run({ type: 'shell', params: { script: 'echo "$OTHER $TOKEN"' }, secrets })
    expect(record).toMatchObject({ secrets, result: { stdout: `${OTHER} ***\n` } })
  })

  test('also the value that a running task got, after another took its place', async () => {
    put('rotating', 'value-of-before')
    const go = join(temp.path, 'go-rotating')
    const id = await pair.runtime.submit({
      ...script(`echo ready; ${waitFor(go)}; echo "$T" value-of-after`),
      secrets: { T: 'rotating' },
    })
    await pair.runtime.printed(id)
    put('rotating', 'value-of-after')
    writeFileSync(go, '')
    expect((await pair.runtime.ended(id)).stdout).toBe('ready\n*** value-of-after\n')
  })

  test('after a kill of the service, by a task that outlives it', async () => {
    using data = tempDir()
    await using _ = endProcessesOf(data.path)
    const options = { dataDir: data.path, flags: ['--secrets-dir', dir] }
    const go = join(data.path, 'go')
    const cut = `A=$(printf %s "$OTHER" | cut -c1-5); B=$(printf %s "$OTHER" | cut -c6-)`
    let id = ''
    let log = ''
    {
      await using first = await startRuntime(options)
      id = await first.submit({
        ...script(
          `${cut}; echo "$OTHER"; printf "$A"; ${waitFor(go)}; printf "$B"; echo; echo "$OTHER" >&2; touch ${go}.done; ${waitFor(`${go}.end`)}`,
        ),
        secrets: { OTHER: 'other' },
      })
      log = (await first.printed(id)).artifacts.stdout_path
      await first.stop('SIGKILL')
    }
    // Nothing but the launcher is there now.
    writeFileSync(go, '')
    expect(
      await until(
        () => readFileSync(log, 'utf8'),
        (text) => text.length > 4,
      ),
    ).toBe('***\n***\n')
    await using second = await startRuntime(options)
    writeFileSync(`${go}.end`, '')
    expect(await second.ended(id)).toMatchObject({ status: 'success', stdout: '***\n***\n', stderr: '***\n' })
  })

  test.skipIf(missingSandbox !== undefined)(
    `in a sandbox, through /dev/stdout, too${missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`}`,
    async () => {
      const task = await pair.runtime.run({
        ...script(
          'echo "$OTHER"; echo "$OTHER" > /dev/stdout; echo "$OTHER" > /dev/stderr; (sleep 0.05; echo "$OTHER") & wait',
        ),
        ...{ secrets: { OTHER: 'other' }, sandbox: { profile: 'linux_sandbox' } },
      })
      expect(task).toMatchObject({ status: 'success', stdout: '***\n***\n***\n', stderr: '***\n' })
    },
  )
})

test('a cached outcome of a task that prints a secret is not that of a task that masks it', async () => {
  const task = (mask: boolean) => ({
    ...{ type: 'shell', params: { script: 'echo "$OTHER"' }, cache: { key: 'printed' } },
    secrets: { OTHER: { name: 'other', mask } },
  })
  expect(await pair.control.run(task(false))).toMatchObject({ result: { stdout: `${OTHER}\n` } })
  expect(await pair.control.run(task(true))).toMatchObject({ result: { stdout: '***\n' } })
})
