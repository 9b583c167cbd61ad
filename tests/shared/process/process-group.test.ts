/**
 * Processes and what they start, against real ones: how they end, what is left of them, what of their output is kept.
 * A namespace of its own makes the test's shell the first process, which never reaps: what ends there stays a zombie.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type GroupOptions, startGroup } from '../../../shared/process/process-group.ts'
import { tempDir } from '../../support/temp.ts'
import { isAlive, until } from '../../support/until.ts'

const ROOT = join(import.meta.dir, '../../..')
const env = { PATH: process.env.PATH ?? '/usr/bin:/bin' }
const shell = (script: string, options: Partial<GroupOptions> = {}) =>
  startGroup({ command: ['/bin/sh', '-c', script], env, killGraceMs: 2_000, maxStreamBytes: 1024, ...options })

describe('a process group', () => {
  test('ends with its leader: what is left of it is ended too', async () => {
    const { finished } = shell('sleep 600 & echo $!')
    const { ending, stdout } = await finished
    expect(ending).toEqual({ exitCode: 0 })
    expect(await isAlive(Number(stdout.text))).toBe(false)
  })

  test('that ignores TERM is killed after the grace time', async () => {
    using dir = tempDir()
    const ready = join(dir.path, 'ready')
    const { finished, stop } = shell(`trap "" TERM; : > ${ready}; while :; do sleep 0.05; done`, { killGraceMs: 50 })
    await until(() => existsSync(ready))
    stop()
    expect((await finished).ending).toEqual({ signal: 'SIGKILL' })
  })

  test('says how its leader ended', async () => {
    expect((await shell('exit 7').finished).ending).toEqual({ exitCode: 7 })
    expect((await shell('kill -SEGV $$').finished).ending).toEqual({ signal: 'SIGSEGV' })
  })

  test('keeps the first bytes of each stream, cut at a character, and says so', async () => {
    const { stdout, stderr } = await shell('printf aéé; printf b >&2', { maxStreamBytes: 4 }).finished
    expect({ stdout, stderr }).toEqual({
      stdout: { text: 'aé', truncated: true, tail: 'aéé' },
      stderr: { text: 'b', truncated: false },
    })
  })

  test('is read to the end, however much it writes, and when', async () => {
    const bytes = 1024 * 1024
    const zeros = `head -c ${bytes} /dev/zero | tr '\\0' x`
    for (const script of [zeros, `sleep 0.01; ${zeros}`, `${zeros}; sleep 0.1; ${zeros} >&2`]) {
      const { stdout, stderr } = await shell(script, { maxStreamBytes: 4 * bytes }).finished
      expect({ stdout: stdout.text.length, cut: stdout.truncated }).toEqual({ stdout: bytes, cut: false })
      expect(stderr.text.length).toBe(script.endsWith('>&2') ? bytes : 0)
    }
    const { stdout } = await shell('echo soon; exec >&-; sleep 0.1').finished
    expect(stdout.text).toBe('soon\n')
  })

  test('shows what it has written while it runs', async () => {
    using dir = tempDir()
    const go = join(dir.path, 'go')
    const { stdout, finished } = shell(`echo early; while [ ! -e ${go} ]; do sleep 0.01; done; echo late`)
    const text = () => Buffer.from(stdout.read(0)).toString()
    await until(text, (found) => found === 'early\n')
    await Bun.write(go, '')
    expect((await finished).stdout.text).toBe('early\nlate\n')
  })

  test('may open its output again by name', async () => {
    const { ending, stdout, stderr } = await shell('echo one > /dev/stdout; echo two > /dev/stderr').finished
    expect({ ending, out: stdout.text, err: stderr.text }).toEqual({
      ending: { exitCode: 0 },
      out: 'one\n',
      err: 'two\n',
    })
  })

  test('may have one stream for both, in the order in which it was written', async () => {
    const script = 'for i in 1 2 3; do echo out$i; echo err$i >&2; done; echo x > /dev/stderr; echo y > /dev/stdout'
    const { stdout, stderr } = await shell(script, { mergeStreams: true }).finished
    const text = 'out1\nerr1\nout2\nerr2\nout3\nerr3\nx\ny\n'
    expect({ stdout, stderr }).toEqual({ stdout: { text, truncated: false }, stderr: { text: '', truncated: false } })
    const cut = await shell('printf abc; printf def >&2', { mergeStreams: true, maxStreamBytes: 4 }).finished
    expect(cut.stdout).toEqual({ text: 'abcd', truncated: true, tail: 'abcdef' })
  })

  test('reads the stdin it was given, from its beginning, also by name', async () => {
    const { stdout } = await shell('head -n 1; cat /dev/stdin', { stdin: 'one\ntwo €\n' }).finished
    expect(stdout.text).toBe('one\none\ntwo €\n')
  })

  test('that does not read its stdin is not held up by it', async () => {
    const stdin = 'x'.repeat(1024 * 1024)
    for (const script of ['exit 3', 'exec 0<&-; exit 3']) {
      expect((await shell(script, { stdin }).finished).ending).toEqual({ exitCode: 3 })
    }
    const { stdout } = await shell('wc -c', { stdin }).finished
    expect(Number(stdout.text)).toBe(stdin.length)
  })

  test('has an empty stdin otherwise', async () => {
    expect((await shell('cat; echo end').finished).stdout.text).toBe('end\n')
    expect((await shell('cat; echo end', { stdin: '' }).finished).stdout.text).toBe('end\n')
  })

  test('is not held up by a process that left it and keeps its output open', async () => {
    // The leader waits until the other leads a group and a session of its own.
    const leave = 'setsid sleep 600 & while ! grep -q " $! $! " /proc/$!/stat; do :; done; echo $!'
    const { ending, stdout } = await shell(leave).finished
    const stray = Number(stdout.text)
    expect({ ending, isAlive: await isAlive(stray) }).toEqual({ ending: { exitCode: 0 }, isAlive: true })
    process.kill(stray, 'SIGKILL')
  })

  test('leaves no descriptor of ours open', async () => {
    const open = () => [...new Bun.Glob('*').scanSync({ cwd: '/proc/self/fd', onlyFiles: false })].length
    await shell('true').finished
    const before = open()
    const text = 'echo x; cat; echo y >&2'
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => shell(text, { mergeStreams: i % 2 === 0, stdin: 'z' }).finished),
    )
    await until(open, (count) => count <= before)
    expect(() => startGroup({ command: ['/no/such'], env, stdin: 'z', killGraceMs: 0, maxStreamBytes: 1 })).toThrow()
    expect(open()).toBeLessThanOrEqual(before)
  })

  test('of zombies that nobody reaps counts as ended', async () => {
    const program = `
      import { type GroupOptions, startGroup } from './shared/process/process-group.ts'
      const group = startGroup({ command: ['/bin/sh', '-c', 'sleep 600 & exit 0'], env: {}, killGraceMs: 60_000, maxStreamBytes: 1 })
      console.log(JSON.stringify((await group.finished).ending))
      process.exit(0)`
    const command = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--mount-proc', '--kill-child']
    const child = Bun.spawn([...command, process.execPath, '-e', program], {
      cwd: ROOT,
      env,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    expect({ stdout, stderr, exitCode: await child.exited }).toEqual({
      stdout: '{"exitCode":0}\n',
      stderr: '',
      exitCode: 0,
    })
  })
})
