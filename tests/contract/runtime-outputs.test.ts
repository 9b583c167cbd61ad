/**
 * Goal: of a task with `outputs` the workspace keeps what matches and nothing else, whatever the task made, also over a kill
 * of the service. Method: tasks that make trees; their files are read over HTTP, and the directory is looked at.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, script, waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0
const FENCED = { sandbox: { profile: 'linux_sandbox' } }
const withSandbox = missingSandbox === undefined ? test : test.skip
const skipped = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-kept-files', '20', '--max-kept-bytes', '100000'] })
})
afterAll(() => runtime.dispose())

const workspaceOf = (service: Runtime, id: string): string => join(service.dataDir, 'tasks', id, 'workspace')

/** All paths in the workspace of a task. */
const left = (service: Runtime, id: string): string[] =>
  readdirSync(workspaceOf(service, id), { recursive: true, encoding: 'utf8' }).toSorted()

const fileOf = async (service: Runtime, id: string, path: string) =>
  await (await service.fetch(`/api/v1/tasks/${id}/files/${path}`)).text()

const MADE = `mkdir -p dist/deep src/a/b empty && echo 1 > dist/one && echo 2 > dist/deep/two && echo 3 > src/a/b/three
  echo 4 > report.xml && echo 5 > other && ln -s /etc/passwd dist/link && mkfifo dist/pipe`

describe('the workspace of an ended task', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ['files', ['dist/one', 'report.xml'], ['dist', 'dist/one', 'report.xml']],
    ['a tree, without its links and pipes', ['dist/**'], ['dist', 'dist/deep', 'dist/deep/two', 'dist/one']],
    ['a directory by its name', ['dist/deep'], ['dist', 'dist/deep', 'dist/deep/two']],
    ['files anywhere', ['**/t*'], ['dist', 'dist/deep', 'dist/deep/two', 'src', 'src/a', 'src/a/b', 'src/a/b/three']],
    ['an empty directory', ['empty'], ['empty']],
    ['nothing that is not there', ['none/**'], []],
    ['no link by its name', ['dist/link', 'dist/link/**'], []],
    ['nothing', [], []],
  ])('has %s', async (_, outputs, kept) => {
    const { task_id, status } = await runtime.run({ ...script(MADE), outputs })
    expect(status).toBe('success')
    expect(left(runtime, task_id)).toEqual([...kept])
    expect(existsSync(join(runtime.dataDir, 'tasks', task_id, 'kept'))).toBe(false)
  })

  test('has all without outputs', async () => {
    const { task_id } = await runtime.run(script(MADE))
    expect(left(runtime, task_id)).toContain('src/a/b/three')
  })

  test('has the outputs of a task that failed, and usage counts them', async () => {
    const task = await runtime.run({ ...script(`${MADE}; exit 3`), outputs: ['report.xml', 'dist/**'] })
    expect(task).toMatchObject({ status: 'failed', error: { code: 'exit_nonzero' } })
    expect(task.usage).toMatchObject({ kept_files: 3, kept_bytes: 6 })
    expect(await fileOf(runtime, task.task_id, 'report.xml')).toBe('4\n')
  })

  test('has the outputs of a task that was killed', async () => {
    const id = await runtime.submit({ ...script(`${MADE}; echo; sleep 600`), outputs: ['dist/one'] })
    await runtime.printed(id)
    await runtime.kill(id)
    expect((await runtime.ended(id)).status).toBe('cancelled')
    expect(left(runtime, id)).toEqual(['dist', 'dist/one'])
  })

  test('keeps modes, but no file that gives its rights to others', async () => {
    const made = 'mkdir d; echo > d/run; chmod 750 d; chmod 755 d/run; cp /bin/true d/suid; chmod 6755 d/suid'
    const { task_id } = await runtime.run({ ...script(made), outputs: ['d/**'] })
    const modeOf = (name: string) => statSync(join(workspaceOf(runtime, task_id), name)).mode & 0o7777
    expect(['d', 'd/run', 'd/suid'].map(modeOf)).toEqual([0o750, 0o755, 0o755])
  })

  withSandbox(`is reduced in a sandbox, too, also where the task closed its directories${skipped}`, async () => {
    const made = `${MADE}; mkdir -p closed/in; echo > closed/in/file; chmod 0 closed/in closed`
    const task = await runtime.run({ ...script(made), outputs: ['dist/one', 'closed/**'], ...FENCED })
    expect(task.status).toBe('success')
    expect(left(runtime, task.task_id)).toEqual(['closed', 'closed/in', 'closed/in/file', 'dist', 'dist/one'])
    const owner = lstatSync(join(workspaceOf(runtime, task.task_id), 'dist/one')).uid
    expect(lstatSync(workspaceOf(runtime, task.task_id)).uid).toBe(owner)
    expect(await fileOf(runtime, task.task_id, 'dist/one')).toBe('1\n')
  })

  test.skipIf(!isRoot || missingSandbox !== undefined)(
    'is reduced by a service without root, where the task closed its directories',
    async () => {
      await using user = await startRuntime({
        through: ['setpriv', '--reuid=54321', '--regid=54321', '--clear-groups'],
        ownerUid: 54_321,
      })
      const made = `${MADE}; mkdir -p closed/in; echo > closed/in/file; chmod 0 closed/in closed .`
      const task = await user.run({ ...script(made), outputs: ['closed/**'], ...FENCED })
      expect(task.status).toBe('success')
      expect(left(user, task.task_id)).toEqual(['closed', 'closed/in', 'closed/in/file'])
    },
  )

  test.skipIf(Bun.which('perl') === null)('keeps names of every kind, and nothing that is very deep', async () => {
    const made = `printf x > "$(printf 'a\\377b')"; printf x > "$(printf 'a\\nb')"; printf x > __proto__; mkdir -- -rf
      perl -e 'for (1..5000) { mkdir "d" or die; chdir "d" or die } open(F, ">", "file") or die'`
    const task = await runtime.run({ ...script(made), outputs: ['a*', '__proto__', '-rf', '**/file'] })
    expect(task).toMatchObject({ status: 'success', usage: { kept_files: 3 } })
    const names = readdirSync(workspaceOf(runtime, task.task_id), { encoding: 'latin1' })
    expect(names.toSorted()).toEqual(['-rf', '__proto__', 'a\nb', 'aÿb'].toSorted())
  })

  test('is not followed out of', async () => {
    using outside = tempDir()
    writeFileSync(join(outside.path, 'precious'), 'x')
    const made = `ln -s ${outside.path} a; ln -s ${outside.path} b; ln -s ${outside.path}/precious c`
    const task = await runtime.run({ ...script(made), outputs: ['a/**', 'c'] })
    expect(left(runtime, task.task_id)).toEqual([])
    for (const replaced of [
      `rm -rf ../workspace; ln -s ${outside.path} ../workspace`,
      'rm -rf ../workspace',
      'rm -rf ../workspace; mkfifo ../workspace',
    ]) {
      const { status, task_id } = await runtime.run({ ...script(replaced), outputs: ['**'] })
      expect(status).toBe('success')
      expect(left(runtime, task_id)).toEqual([])
    }
    expect(existsSync(join(outside.path, 'precious'))).toBe(true)
  })

  test('that is prepared against the service fails by itself', async () => {
    using outside = tempDir()
    writeFileSync(join(outside.path, 'precious'), 'x')
    const task = await runtime.run({ ...script(`echo > a; ln -s ${outside.path} ../kept`), outputs: ['a'] })
    expect(task).toMatchObject({ status: 'failed', exit_code: 0, error: { code: 'internal' } })
    expect(readdirSync(outside.path)).toEqual(['precious'])
  })
})

test('a file with a secret is not kept', async () => {
  using secrets = tempDir()
  writeFileSync(join(secrets.path, 'token'), 'sesame', { mode: 0o600 })
  await using service = await startRuntime({ flags: ['--secrets-dir', secrets.path] })
  const asked = { outputs: ['**'], secrets: { TOKEN: { name: 'token', file: 'in/token' } } }
  const task = await service.run({ ...script('cat "$TOKEN"; echo > in/other'), ...asked })
  expect(task).toMatchObject({ status: 'success', stdout: '***', usage: { kept_files: 1 } })
  expect(left(service, task.task_id)).toEqual(['in', 'in/other'])
})

test('what is not kept is removed soon', async () => {
  const made = 'mkdir -p a/b; seq 1 2000 | sed s,^,a/b/, | xargs touch; echo > kept'
  await runtime.run({ ...script(made), outputs: ['kept'] })
  const trash = join(runtime.dataDir, 'trash')
  expect(await until(() => (existsSync(trash) ? readdirSync(trash).length : 0), 0)).toBe(0)
})

describe('more than a task may keep', () => {
  test.each([
    [
      'files',
      'seq 1 30 | xargs touch',
      'outputs has more than 20 files (--max-kept-files); its workspace stays as it is',
    ],
    [
      'bytes',
      'truncate -s 1T a',
      'outputs has more than 100000 bytes (--max-kept-bytes); its workspace stays as it is',
    ],
  ])('%s: the task fails, and its workspace stays', async (_, made, message) => {
    const task = await runtime.run({ ...script(`${made}; mkdir d; echo > d/other.txt`), outputs: ['*'] })
    expect(task).toMatchObject({ status: 'failed', exit_code: 0, error: { code: 'resource_limit_exceeded', message } })
    expect(left(runtime, task.task_id)).toContain('d/other.txt')
  })

  test('a task that failed keeps its own error', async () => {
    const task = await runtime.run({ ...script('seq 1 30 | xargs touch; exit 4'), outputs: ['*'] })
    expect(task).toMatchObject({ status: 'failed', exit_code: 4, error: { code: 'exit_nonzero' } })
  })
})

describe.skipIf(!isRoot || missingSandbox !== undefined)('a task beside it with the same user', () => {
  /** Tasks without a view of their own reach each other's workspaces while they run. */
  const SHARED = { sandbox: { profile: 'linux_sandbox', namespaces: { mount: false } } }

  test('swaps directories for links all the time, and nothing outside is touched', async () => {
    using outside = tempDir()
    chmodSync(outside.path, 0o755)
    const names = Array.from({ length: 300 }, (_, i) => `f${i}`)
    for (const at of ['', 'in']) {
      mkdirSync(join(outside.path, at), { recursive: true })
      for (const name of names) writeFileSync(join(outside.path, at, name), 'precious')
    }
    using shared = tempDir()
    chmodSync(shared.path, 0o755)
    await using service = await startRuntime({ dataDir: shared.path, flags: ['--max-kept-files', '100000'] })
    const swapping = `cd ${shared.path}; while :; do for t in tasks/victim-$1; do
      mv $t/workspace/dist $t/workspace/real && ln -s ${outside.path} $t/workspace/dist
      rm -f $t/workspace/dist; mv $t/workspace/real $t/workspace/dist; done 2>/dev/null; done`
    const rounds = 6
    const attackers: string[] = []
    for (let i = 0; i < 2; i++) attackers.push(await service.script(swapping.replaceAll('$1', '*'), SHARED))
    const made = `mkdir -p dist/in; cd dist; for i in $(seq 0 299); do echo mine > f$i; echo mine > in/f$i; done`
    for (let round = 0; round < rounds; round++) {
      const outputs = round % 2 === 0 ? ['dist/**'] : ['**/f1']
      const task = await service.run({ task_id: `victim-${round}`, ...script(made), outputs, ...SHARED })
      expect(['success', 'failed']).toContain(task.status)
      for (const path of left(service, task.task_id)) {
        const whole = join(workspaceOf(service, task.task_id), path)
        const status = lstatSync(whole)
        expect(status.isFile() || status.isDirectory()).toBe(true)
        if (status.isFile()) expect(status.size).toBe('mine\n'.length)
      }
    }
    for (const id of attackers) await service.kill(id)
    for (const id of attackers) await service.ended(id)
    for (const at of ['', 'in']) {
      const found = readdirSync(join(outside.path, at)).filter((name) => name !== 'in')
      expect(found.toSorted()).toEqual(names.toSorted())
    }
  })
})

test('a task that ended while the service was away is reduced by the next one', async () => {
  using temp = tempDir()
  await using _ = endProcessesOf(temp.path)
  let id = ''
  {
    await using first = await startRuntime({ dataDir: temp.path })
    const body = { ...script(`echo; ${waitFor(join(temp.path, 'go'))}; echo x > a; echo x > b`), outputs: ['a'] }
    id = await first.submit(body)
    await first.printed(id)
    await first.stop('SIGKILL')
  }
  writeFileSync(join(temp.path, 'go'), '')
  await using second = await startRuntime({ dataDir: temp.path })
  expect((await second.ended(id)).status).toBe('success')
  expect(left(second, id)).toEqual(['a'])
})

test('a kill of the service at any moment of the reduction leaves what is kept', async () => {
  // On a busy machine a whole reduction may pass between two looks at it.
  await until(killsInReduction, (kills) => kills > 0, { patienceMs: 40_000 })
})

/** Kills the service in the reduction of one task, and returns how often. */
async function killsInReduction(): Promise<number> {
  using temp = tempDir()
  await using _ = endProcessesOf(temp.path)
  const count = 3_000
  const made = `mkdir -p dist other; seq 1 ${count} | sed s,^,dist/f, | xargs touch; seq 1 ${count} | sed s,^,other/f, | xargs touch`
  const kept = join(temp.path, 'tasks/t/kept')
  const submitted = { task_id: 't', ...script(`${made}; echo`), outputs: ['dist/**'] }
  let kills = 0
  for (let isEnded = false; !isEnded; ) {
    await using service = await startRuntime({ dataDir: temp.path })
    if (kills === 0) await service.submit(submitted)
    // Each service dies a little later in its work.
    const moved = () => {
      try {
        return readdirSync(kept, { recursive: true }).length
      } catch {
        return 0 // not there yet, or just renamed to the workspace
      }
    }
    const isDue = (n: number) => n > kills * 700
    const seen = await until(
      async () => ({ n: moved(), status: (await service.get('t')).status }),
      ({ n, status }) => isDue(n) || status === 'success' || status === 'failed',
    )
    isEnded = seen.status === 'success' || seen.status === 'failed'
    if (!isEnded) {
      kills++
      await service.stop('SIGKILL')
    } else {
      expect(seen.status).toBe('success')
      expect((await service.get('t')).usage).toMatchObject({ kept_files: count })
      expect(left(service, 't').length).toBe(count + 1)
      expect(existsSync(kept)).toBe(false)
    }
  }
  return kills
}

test.skipIf(!canMount)('a disk without room for all directories: all files stay, and the task says so', async () => {
  using temp = tempDir()
  using disk = smallDisk(join(temp.path, 'disk'), 24 * 1024 * 1024)
  const allowFiles = (more: number) => {
    const { files, ffree } = statfsSync(disk.path)
    Bun.spawnSync(['mount', '-o', `remount,nr_inodes=${files - ffree + more}`, disk.path])
  }
  await using service = await startRuntime({ dataDir: join(disk.path, 'data') })
  const made = 'for i in $(seq 9); do mkdir -p a/$i/q; echo $i > a/$i/q/f; done; echo'
  const message = 'cannot keep the outputs of the task: ENOSPC: no space left on device, mkdir'
  const fault = { code: 'internal', message }
  const runWithoutRoom = async (exitCode: number) => {
    const go = join(temp.path, `go-${exitCode}`)
    const id = await service.submit({ ...script(`${made}; ${waitFor(go)}; exit ${exitCode}`), outputs: ['a/**'] })
    await service.printed(id)
    allowFiles(8) // for the new workspace and some directories in it
    writeFileSync(go, '')
    const task = await service.ended(id)
    allowFiles(1_000)
    for (let i = 1; i <= 9; i++) expect(await fileOf(service, id, `a/${i}/q/f`)).toBe(`${i}\n`)
    expect(existsSync(join(service.dataDir, 'tasks', id, 'kept'))).toBe(false)
    const events = await service.events(id)
    expect(events.find(({ event_type }) => event_type === 'outputs_not_kept')).toMatchObject({ data: { error: fault } })
    return task
  }
  expect(await runWithoutRoom(0)).toMatchObject({ status: 'failed', exit_code: 0, error: fault })
  expect(await runWithoutRoom(3)).toMatchObject({ status: 'failed', exit_code: 3, error: { code: 'exit_nonzero' } })
})

test.each([
  [['/dist'], 'outputs[0] must be a path below the workspace, such as dist/**, got "/dist"'],
  [['a', 'b/../c'], 'outputs[1] must be a path below the workspace, such as dist/**, got "b/../c"'],
  [[''], 'outputs[0] must be a path below the workspace, such as dist/**, got ""'],
  [['a\0'], 'outputs[0] cannot contain NUL characters'],
  [['x'.repeat(1025)], 'outputs[0] has 1025 characters (at most 1024)'],
  [Array.from({ length: 65 }, () => 'a'), 'outputs has 65 entries (at most 64)'],
  [
    Array.from({ length: 5 }, () => 'a'.repeat(1000)),
    'outputs has 5000 characters (at most 4096 in all patterns together)',
  ],
])('patterns that cannot be meant are refused: %#', async (outputs, message) => {
  expect(await refused(await runtime.post({ ...script('true'), outputs }))).toEqual([400, 'invalid_input', message])
})
