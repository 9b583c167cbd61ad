/**
 * Tasks in a sandbox that work against the service: what they cannot do from inside they may try by what they leave to the
 * service. It reads and removes what is theirs, and follows none of their links. Source: contract 5, Runtime; the list of
 * attacks (symbolic links, special files, inherited files).
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAttempts } from '../../runtime/escape/attempts.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { type EscapePlace, escapePlace } from '../support/escape.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const FENCED = {
  sandbox: { profile: 'linux_sandbox', namespaces: { net: true, cgroup: true } },
  policy: { capability_mode: 'strict' },
}

const skipped = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`

const isRoot = process.getuid?.() === 0

const asUser = (uid: number) => ({
  through: ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'],
  ownerUid: uid,
})

/** Who runs the service: who runs the tests, and somebody without rights. */
const SERVICES = isRoot
  ? [
      { who: 'root', uid: undefined },
      { who: 'a user', uid: 54_321 },
    ]
  : [{ who: 'a user', uid: undefined }]

describe.skipIf(missingSandbox !== undefined).each(SERVICES)(
  `a task in a sandbox of $who${skipped}`,
  ({ who, uid }) => {
    const host = tempDir()
    chmodSync(host.path, 0o755)
    const victim = join(host.path, 'victim')
    let place: EscapePlace
    let runtime: Runtime
    beforeAll(async () => {
      mkdirSync(victim)
      chmodSync(victim, 0o777)
      writeFileSync(join(victim, 'secret'), 'sesame\n')
      place = await escapePlace(['/run', '/home', '/root', '/var/tmp'])
      const exposed = ['--sandbox-expose', place.workspace]
      const retention = ['--result-retention-secs', '1', '--gc-interval-ms', '50']
      runtime = await startRuntime({ flags: [...exposed, ...retention], ...(uid !== undefined && asUser(uid)) })
    })
    afterAll(async () => {
      await runtime.dispose()
      await place[Symbol.asyncDispose]()
      host[Symbol.dispose]()
    })

    /** Once the service has removed it. */
    const removed = (taskDir: string) =>
      until(
        () => existsSync(taskDir),
        (isThere) => !isThere,
      )

    test('does not get out of it', async () => {
      const isLimited = who === 'root' && missingCgroups === undefined
      const baits = [...place.baitArguments, ...(isLimited ? ['--bait', 'pids-max=32'] : [])]
      const task = await runtime.run({
        execution: { kind: 'command', program: place.program, args: baits },
        limits: isLimited ? { pids_max: 32 } : {},
        ...FENCED,
      })
      expect(task).toMatchObject({ status: 'success', stderr: '' })
      const attempts = parseAttempts(task.stdout!)
      expect(attempts.filter(({ verdict }) => verdict === 'open')).toEqual([])
      expect(attempts.filter(({ verdict }) => verdict === 'blocked').length).toBeGreaterThan(105)
      expect((await place.baits.collect()).taken).toEqual([])
    })

    test('does not reach another one beside it', async () => {
      const execution = { kind: 'command', program: place.program }
      const both = await Promise.all([runtime.run({ execution, ...FENCED }), runtime.run({ execution, ...FENCED })])
      for (const { status, stdout } of both) {
        expect(status).toBe('success')
        expect(parseAttempts(stdout!).filter(({ verdict }) => verdict === 'open')).toEqual([])
      }
    })

    test('can write nothing beside its workspace: its records and logs are out of its reach', async () => {
      const script = 'for d in .. ../.. /; do echo x > $d/mine; done; ls -a .. ; mv ../workspace ../other; exit 0'
      const task = await runtime.runScript(script, FENCED)
      expect(task).toMatchObject({ status: 'success' })
      // What it sees beside its workspace is what the way there needs, and at most what it made itself, in memory.
      const names = task.stdout!.trim().split('\n')
      expect(names.filter((name) => !['.', '..', 'workspace', 'script', 'mine'].includes(name))).toEqual([])
      expect(existsSync(join(task.artifacts.task_dir, 'mine'))).toBe(false)
      const isThere = existsSync(join(task.artifacts.task_dir, 'workspace'))
      const isRetentionOver = Date.now() - Date.parse(task.finished_at!) > 1_000
      expect(isThere || isRetentionOver).toBe(true)
    })

    test('leaves links that nobody follows, to what the service shows and to what it removes', async () => {
      const links = `ln -s ${victim} directory; ln -s ${victim}/secret file; ln -s ${victim}/secret stdout.log; mkfifo pipe`
      const { task, logs } = await until(
        async () => {
          const task = await runtime.runScript(`${links}; ln -s / root; ln -s . loop; echo printed`, FENCED)
          return { task, logs: await runtime.fetch(`/api/v1/tasks/${task.task_id}/logs?stream=stdout`) }
        },
        ({ logs: { status } }) => status !== 404, // its retention was over
      )
      expect(task).toMatchObject({ status: 'success', stdout: 'printed\n' })
      expect(await logs.text()).toBe('printed\n')
      await removed(task.artifacts.task_dir)
      expect(readdirSync(victim)).toEqual(['secret'])
      expect(readFileSync(join(victim, 'secret'), 'utf8')).toBe('sesame\n')
    })

    test.each([
      [
        'directories deeper than any path',
        'i=0; while [ $i -lt 1500 ]; do mkdir dddddddd; cd dddddddd; i=$((i+1)); done',
      ],
      [
        'directories that nobody may enter',
        'p=closed; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do p=$p/below; done; mkdir -p $p; echo x > $p/file; ' +
          'find closed -depth -type d -exec chmod 000 {} ";"; chmod 000 .',
      ],
      ['names of every kind', 'touch -- "-rf" "$(printf "a\\nb")" "$(printf "\\377")"; mkdir ...'],
      ['many files', 'i=0; while [ $i -lt 2000 ]; do : > f$i; i=$((i+1)); done'],
    ])('is removed with all that it leaves: %s', async (_, script) => {
      const task = await runtime.runScript(`${script}; exit 0`, FENCED)
      expect(task).toMatchObject({ status: 'success' })
      await removed(task.artifacts.task_dir)
    })

    test('leaves no program that gives its rights to others', async () => {
      const task = await runtime.runScript('cp /bin/sh mine; chmod 6755 mine; echo done; sleep 0.2', FENCED)
      expect(task.stdout).toBe('done\n')
      const { mode } = statSync(join(runtime.dataDir, 'tasks'))
      expect(mode & 0o077, 'who may enter the directory of all tasks').toBe(0)
    })
  },
)
