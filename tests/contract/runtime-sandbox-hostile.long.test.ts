/**
 * Tasks in a sandbox that work against the service and against each other: nothing of what they try from inside works.
 * Source: contract 5, Runtime; the list of attacks.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseAttempts } from '../../runtime/escape/attempts.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { type EscapePlace, escapePlace } from '../support/escape.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'

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
    let place: EscapePlace
    let runtime: Runtime
    beforeAll(async () => {
      place = await escapePlace(['/run', '/home', '/root', '/var/tmp'])
      const exposed = ['--sandbox-expose', place.workspace]
      runtime = await startRuntime({ flags: exposed, ...(uid !== undefined && asUser(uid)) })
    })
    afterAll(async () => {
      await runtime.dispose()
      await place[Symbol.asyncDispose]()
    })

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
      expect(existsSync(join(task.artifacts.task_dir, 'workspace'))).toBe(true)
    })

    test('leaves no program that gives its rights to others', async () => {
      const task = await runtime.runScript('cp /bin/sh mine; chmod 6755 mine; echo done; sleep 0.2', FENCED)
      expect(task.stdout).toBe('done\n')
      const { mode } = statSync(join(runtime.dataDir, 'tasks'))
      expect(mode & 0o077, 'who may enter the directory of all tasks').toBe(0)
    })
  },
)
