/**
 * Goal: a task gets the files of another one as they were, and nothing else of the host, whatever that other task left, over
 * kills of the service and full disks. Method: tasks that make files, and tasks that look at what they got.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskStatusResponse, TaskSummary } from '../../shared/contract/runtime.ts'
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { MAX_INPUTS } from '../../shared/request/inputs.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused, SLEEP, script, waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { canMount, smallDisk } from '../support/small-disk.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024
const LIMITS = ['--max-input-files', '100', '--max-input-bytes', String(400 * MIB)]
const FENCED = { sandbox: { profile: 'linux_sandbox' as const } }
const isRoot = process.getuid?.() === 0
const skipped = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
const withSandbox = test.skipIf(missingSandbox !== undefined)

const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: LIMITS })
  const made = `mkdir -p dist/deep empty 'a b' && printf one > dist/one && printf two > dist/deep/two && chmod 750 dist/deep
    chmod 4755 dist/one; ln -s /etc/passwd dist/link; ln -s dist linked; mkfifo dist/pipe; echo x > "a b/ü"
    ln -s / root; mkfifo pipe; truncate -s 1T huge; mkdir many; seq 1 200 | sed s,^,many/, | xargs touch`
  expect(await runtime.run({ task_id: 'made', ...script(made) })).toMatchObject({ status: 'success' })
})
afterAll(() => runtime.dispose())

const workspaceOf = (id: string, { dataDir } = runtime): string => join(dataDir, 'tasks', id, 'workspace')

const from = (file: string, task_id = 'made') => ({ task_id, file })

/** Runs a script with inputs to its end. */
const runWith = (inputs: SubmitTaskRequest['inputs'], text: string, more: object = {}): Promise<TaskStatusResponse> =>
  runtime.run({ ...script(text), inputs, ...more })

describe('a task gets', () => {
  test('a file, with its mode but without the rights of its owner', async () => {
    const task = await runWith({ 'lib/first': from('dist/one') }, 'cat lib/first; stat -c " %a %h" lib/first')
    expect(task).toMatchObject({ status: 'success', stdout: 'one 755 1\n' })
    expect(task.inputs).toEqual({ 'lib/first': { ...from('dist/one'), sha256: sha256('one'), files: 1, bytes: 3 } })
    expect(await runtime.eventTypes(task.task_id)).toEqual([
      ...['submitted', 'accepted', 'planned', 'resource_reserved', 'inputs_copied', 'started', 'resource_released'],
      'finished',
    ])
    const copy = lstatSync(join(workspaceOf(task.task_id), 'lib/first'))
    expect(copy.ino).not.toBe(lstatSync(join(workspaceOf('made'), 'dist/one')).ino)
  })

  test('a directory, without its links and pipes', async () => {
    const task = await runWith({ d: from('dist') }, 'find d | sort; stat -c %a d/deep; echo changed > d/one')
    expect(task).toMatchObject({ status: 'success', stdout: 'd\nd/deep\nd/deep/two\nd/one\n750\n' })
    const deep = `file 644 ${sha256('two')} two\0`
    const modes = { deep: '750', top: lstatSync(join(workspaceOf('made'), 'dist')).mode & 0o777 }
    expect(modes.top).toBeGreaterThan(0)
    const umask = statSync(join(workspaceOf('made'), 'dist/deep/two')).mode & 0o777
    const list = `directory ${modes.deep} ${sha256(deep.replace('644', umask.toString(8)))} deep\0file 755 ${sha256('one')} one\0`
    expect(task.inputs).toEqual({ d: { ...from('dist'), sha256: sha256(list), files: 2, bytes: 6 } })
    expect(readFileSync(join(workspaceOf('made'), 'dist/one'), 'utf8')).toBe('one')
  })

  test('several inputs at places of any name, also in its working directory', async () => {
    const inputs =
      JSON.parse(`{"src/a": {"task_id": "made", "file": "dist/one"}, "src/b/": {"task_id": "made", "file": "empty"},
      "__proto__": {"task_id": "made", "file": "a b/ü"}}`)
    const moved = await runWith(inputs, 'cat a; cat ../__proto__', { sandbox: { workspace_subdir: 'src' } })
    expect(moved).toMatchObject({ status: 'success', stdout: 'onex\n' })
    expect(Object.keys(moved.inputs!)).toEqual(['src/a', 'src/b/', '__proto__'])
  })

  test('a whole workspace, and what a task with outputs kept', async () => {
    const made = 'mkdir d; echo 1 > d/kept; echo 2 > d/gone'
    const { task_id } = await runtime.run({ ...script(made), outputs: ['d/kept'] })
    const task = await runWith({ all: from('.', task_id) }, 'find all -type f')
    expect(task).toMatchObject({ status: 'success', stdout: 'all/d/kept\n' })
  })

  test('holes as holes', async () => {
    const { task_id } = await runtime.runScript('truncate -s 100M sparse; printf x >> sparse; truncate -s 101M sparse')
    const task = await runWith({ sparse: from('sparse', task_id) }, 'stat -c %s sparse; du -k sparse | cut -f1')
    const [size, kib] = task.stdout!.trim().split('\n').map(Number)
    expect(size).toBe(101 * MIB)
    expect(kib).toBeLessThan(2_048)
    expect(task.inputs!.sparse!.sha256).toBe(sha256(readFileSync(join(workspaceOf(task_id), 'sparse'))))
  })

  withSandbox(`files of its own user in a sandbox${skipped}`, async () => {
    const source = await runtime.run({ ...script('mkdir -p d/e; echo mine > d/e/f; chmod 500 d/e'), ...FENCED })
    expect(source.status).toBe('success')
    const text = 'cat in/d/e/f; echo more >> in/d/e/f && rm -r in/d && id -u'
    const task = await runWith({ 'in/d': from('d', source.task_id) }, text, FENCED)
    expect(task).toMatchObject({ status: 'success', stderr: '' }) // the owner of a directory can always write into it
    if (isRoot) expect(task.stdout).toMatch(/^mine\n6[5-9]\d{3}\n$/)
  })

  test('what the request expects by its hash, and nothing else', async () => {
    const good = await runWith({ a: { ...from('dist/one'), sha256: sha256('one') } }, 'cat a')
    expect(good).toMatchObject({ status: 'success', stdout: 'one' })
    const bad = await runWith({ a: { ...from('dist/one'), sha256: sha256('two') } }, 'cat a')
    expect(bad.error).toEqual({
      code: 'invalid_input',
      message: `inputs.a: "dist/one" of task made has another content: its sha256 is ${sha256('one')}`,
    })
  })

  test('the same from a status that is submitted again', async () => {
    const first = await runWith({ a: from('dist/one') }, 'cat a')
    const { task_id: _, ...status } = first
    const again = await runtime.run({ ...status, ...script('cat a') })
    expect(again).toMatchObject({ status: 'success', stdout: 'one', inputs: first.inputs! })
  })
})

describe('a given content', () => {
  test('becomes a file, and a status shows its hash and not its text', async () => {
    const content = `ä\0${'x'.repeat(MIB)}`
    const task = await runWith({ 'a/b': { content }, empty: { content: '' } }, 'wc -c a/b empty; stat -c %a a/b')
    expect(task).toMatchObject({ status: 'success', stdout: '1048579 a/b\n      0 empty\n1048579 total\n644\n' })
    expect(task.inputs).toEqual({
      'a/b': { sha256: sha256(content), files: 1, bytes: 1_048_579 },
      empty: { sha256: sha256(''), files: 1, bytes: 0 },
    })
    expect(readFileSync(join(workspaceOf(task.task_id), 'a/b'), 'utf8')).toBe(content)
  })

  test('is the one that the request expects, and counts as other inputs', async () => {
    expect((await runWith({ a: { content: 'x', sha256: sha256('y') } }, 'true')).error?.message).toBe(
      `inputs.a: its content has another content: its sha256 is ${sha256('x')}`,
    )
    await using small = await startRuntime({ flags: ['--max-input-bytes', '3'] })
    const task = await small.run({ ...script('true'), inputs: { a: { content: 'abc' }, b: { content: 'd' } } })
    expect(task.error).toMatchObject({
      code: 'invalid_input',
      message: 'inputs.b: its content has too much: all inputs of a task may have 3 bytes (--max-input-bytes)',
    })
  })

  withSandbox(`belongs to the user of the task${skipped}`, async () => {
    const task = await runWith({ 'a/b': { content: 'x' } }, 'stat -c %u a/b a; id -u; echo y >> a/b; cat a/b', FENCED)
    const [file, directory, user, text] = task.stdout.split('\n')
    expect([file, directory, text]).toEqual([user, user, 'xy'])
  })
})

test('thousands of inputs are copied, and only the status of the task lists them', async () => {
  await using own = await startRuntime()
  const { task_id } = await own.runScript('seq 1 3000 | xargs touch')
  const inputs = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`all/${i}`, from(String(i + 1), task_id)]))
  const task = await own.run({ ...script('ls all | wc -l'), inputs })
  expect([task.status, task.stdout, Object.keys(task.inputs!).length]).toEqual(['success', '3000\n', 3_000])
  const { tasks } = (await (await own.fetch('/api/v1/tasks')).json()) as { tasks: TaskSummary[] }
  expect(tasks.find((each) => each.task_id === task.task_id)!.inputs).toBeUndefined()
})

describe('a task that waits', () => {
  test('gets its inputs when its turn comes, and shows before what it will get', async () => {
    await using service = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    const source = await service.runScript('echo x > a')
    const busy = await service.submit(SLEEP)
    const inputs = { b: from('a', source.task_id) }
    const id = await service.submit({ ...script('cat b'), inputs })
    expect(await service.get(id)).toMatchObject({ status: 'accepted', inputs })
    await service.kill(busy)
    expect(await service.ended(id)).toMatchObject({ status: 'success', stdout: 'x\n' })
  })

  test('fails if the source was removed meanwhile', async () => {
    await using service = await startRuntime({ flags: ['--max-running-tasks', '1'] })
    const source = await service.run({ task_id: 'source', ...script('echo x > a') })
    const busy = await service.submit(SLEEP)
    const id = await service.submit({ ...script('cat b'), inputs: { b: from('a', source.task_id) } })
    await service.fetch('/api/v1/tasks/source', { method: 'DELETE' })
    await service.kill(busy)
    const message = 'inputs.b: there is no task source, or it was removed with its files: run it again'
    expect((await service.ended(id)).error).toEqual({
      ...{ code: 'invalid_input', message },
      details: { field: 'inputs', missing_task: 'source' },
    })
  })
})

describe('a task fails, and never starts,', () => {
  const because = (file: string, why: string) =>
    [file, `inputs.in: ${JSON.stringify(file)} of task made ${why}`] as const
  test.each([
    ['none', 'inputs.in: none of task made is not there (a task with outputs keeps only what they match)'],
    because('dist/none', 'is not there (a task with outputs keeps only what they match)'),
    because('dist/one/x', 'is not there (a task with outputs keeps only what they match)'),
    because('linked/one', 'is not there (a task with outputs keeps only what they match)'),
    because('root/etc/passwd', 'is not there (a task with outputs keeps only what they match)'),
    because('dist/link', 'is a symlink, which is not followed'),
    ['pipe', 'inputs.in: pipe of task made is neither a file nor a directory'],
    [
      'huge',
      `inputs.in: huge of task made has too much: all inputs of a task may have ${400 * MIB} bytes (--max-input-bytes)`,
    ],
    [
      'many',
      'inputs.in: many of task made has too much: all inputs of a task may have 100 files and directories (--max-input-files)',
    ],
  ])('without %s', async (file, message) => {
    const task = await runWith({ in: from(file) }, 'echo started')
    expect(task).toMatchObject({ status: 'failed', stdout: '', error: { code: 'invalid_input', message } })
    expect(task.started_at).toBeUndefined()
    expect(existsSync(join(runtime.dataDir, 'tasks', task.task_id, 'filled'))).toBe(false)
  })

  test.skipIf(Bun.which('perl') === null)('if the source is very deep', async () => {
    const deep = `perl -e 'for (1..5000) { mkdir "d" or die; chdir "d" or die }'; printf x > "$(printf 'a\\377\\nb')"`
    const { task_id } = await runtime.runScript(deep)
    const task = await runWith({ in: from('.', task_id) }, 'true')
    const message = `inputs.in: the workspace of task ${task_id} is more than 64 directories deep`
    expect(task.error).toEqual({ code: 'invalid_input', message })
  })

  test('if an input is in the place of its working directory', async () => {
    const more = { sandbox: { workspace_subdir: 'src/x' } }
    expect((await runWith({ src: from('dist/one') }, 'true', more)).error).toEqual({
      code: 'invalid_input',
      message: 'sandbox.workspace_subdir: an input is in the place of the directory src',
    })
  })
})

test('names of every kind are copied', async () => {
  const { task_id } = await runtime.runScript(
    `mkdir d; printf x > "$(printf 'd/a\\377')"; printf x > "$(printf 'd/a\\nb')"`,
  )
  const task = await runWith({ d: from('d', task_id) }, 'ls d | wc -l')
  expect(task.inputs!.d).toMatchObject({ files: 2, bytes: 2 })
  expect(readdirSync(join(workspaceOf(task.task_id), 'd'), { encoding: 'latin1' }).toSorted()).toEqual(['a\nb', 'aÿ'])
})

describe('a request is refused', () => {
  test('for a source that is not there, has not ended, or belongs to another tenant', async () => {
    const running = await runtime.submit(SLEEP)
    const other = await runtime.run({ ...script('echo x > a'), control_context: { tenant: 'web' } })
    const refusalOf = async (task_id: string, more: object = {}) =>
      await refused(await runtime.post({ ...script('true'), inputs: { in: from('a', task_id) }, ...more }))
    const belongs = `inputs.in: task ${other.task_id} belongs to another tenant`
    expect([
      await refusalOf('none'),
      await refusalOf(running),
      await refusalOf(other.task_id),
      await refusalOf('made', { control_context: { tenant: 'web' } }),
    ]).toEqual([
      [400, 'invalid_input', 'inputs.in: there is no task none, or it was removed with its files: run it again'],
      [400, 'invalid_input', `inputs.in: task ${running} has not ended`],
      [400, 'invalid_input', belongs],
      [400, 'invalid_input', 'inputs.in: task made belongs to another tenant'],
    ])
    const own = { inputs: { in: from('a', other.task_id) }, control_context: { tenant: 'web' } }
    expect(await runtime.run({ ...script('cat in'), ...own })).toMatchObject({ status: 'success', stdout: 'x\n' })
    await runtime.kill(running)
    await runtime.ended(running)
  })

  test('by a dry run, too', async () => {
    const body = JSON.stringify({ ...script('true'), inputs: { in: from('a', 'none') } })
    const answer = await runtime.fetch('/api/v1/tasks?dry_run=true', { method: 'POST', body })
    expect((await refused(answer)).slice(0, 2)).toEqual([400, 'invalid_input'])
  })

  test.each([
    [{ '/etc': from('a') }, 'inputs."/etc" must be relative to the workspace'],
    [{ '../a': from('a') }, 'inputs."../a" cannot contain parent traversal'],
    [{ '': from('a') }, 'inputs."" must name a file'],
    [{ '.': from('a') }, 'inputs.. must name a file'],
    [{ 'a\0': from('a') }, 'inputs."a\\u0000" cannot contain NUL characters'],
    [{ a: from('../b') }, 'inputs.a.file cannot contain parent traversal'],
    [{ a: from('/etc/passwd') }, 'inputs.a.file must be relative to the workspace'],
    [{ a: from('') }, 'inputs.a.file must name a file'],
    [{ a: from('x', '../made') }, 'inputs.a.task_id is no id of a task: "../made"'],
    [{ a: from('x', 'self') }, 'inputs.a.task_id is the task itself'],
    [{ a: from('x'), './a': from('y') }, 'inputs."./a" is in the place of inputs.a'],
    [{ 'a/b': from('x'), a: from('y') }, 'inputs."a/b" lies within inputs.a'],
    [{ a: { ...from('x'), sha256: 'A' } }, 'inputs.a.sha256 must have 64 hexadecimal digits, in lower case'],
    [
      { a: 'x' },
      'invalid JSON: inputs.a: expected object with task_id and file, with staged, or with content, got string',
    ],
    [{ a: { task_id: 'made' } }, 'inputs.a: expected object with task_id and file, or with content'],
    [{ a: { ...from('x'), fil: 'y' } }, 'unknown field inputs.a.fil (did you mean inputs.a.file?)'],
    [
      Object.fromEntries(Array.from({ length: MAX_INPUTS + 1 }, (_, i) => [`f${i}`, from('a')])),
      'inputs has 10001 entries (a task has at most 10000)',
    ],
  ])('for inputs that cannot be meant: %#', async (inputs, message) => {
    const answer = await runtime.post({ task_id: 'self', ...script('true'), inputs })
    expect(await refused(answer)).toEqual([400, 'invalid_input', message])
  })
})

test('a source that is swapped for links all the time gives nothing of the host', async () => {
  using outside = tempDir()
  chmodSync(outside.path, 0o755)
  for (const name of ['f1', 'f2']) writeFileSync(join(outside.path, name), 'what nobody may read')
  const { task_id } = await runtime.runScript(
    'mkdir dist; echo mine > dist/f1; echo mine > dist/f2; mkdir -p in/dist; cp dist/* in/dist',
  )
  const at = workspaceOf(task_id)
  const swapping = `cd ${at}; echo; while :; do for d in dist in/dist; do mv $d real && ln -s ${outside.path} $d; rm -f $d; mv real $d
    mv $d/f1 f; ln -s ${outside.path}/f1 $d/f1; rm -f $d/f1; mv f $d/f1; done 2>/dev/null; done`
  const attacker = await runtime.script(swapping)
  await runtime.printed(attacker)
  const seen = new Set<string>()
  for (let i = 0; i < 60; i++) {
    const file = ['dist', 'dist/f1', 'in', '.'][i % 4]!
    const task = await runWith(
      { got: from(file, task_id) },
      'find got ! -type f ! -type d; find got -type f | xargs cat',
    )
    seen.add(task.status === 'success' ? task.stdout!.replace(/(mine\n)+/, 'mine') : task.error!.code)
  }
  await runtime.kill(attacker)
  await runtime.ended(attacker)
  for (const text of seen) expect(['mine', '', 'invalid_input']).toContain(text)
  expect(seen.has('mine')).toBe(true)
})

test('a task gets all of a directory, also if the source is to be removed meanwhile', async () => {
  // Enough for a copy that a busy machine sees under way.
  await using service = await startRuntime({ flags: ['--max-input-files', '30000'] })
  const made = 'for d in 1 2 3 4 5 6 7 8; do mkdir $d; seq 1 3000 | sed s,^,$d/, | xargs touch; done'
  await service.run({ task_id: 'source', ...script(made) })
  const inputs = { in: from('.', 'source') }
  const id = await service.submit({ task_id: 'target', ...script('find in -type f | wc -l'), inputs })
  const remove = () => service.fetch('/api/v1/tasks/source', { method: 'DELETE' })
  await until(() => existsSync(join(service.dataDir, 'tasks/target/filled/in')))
  expect(await refused(await remove())).toEqual([
    409,
    'conflict',
    'files of task source are being copied for task target (try again when that has started, or kill it)',
  ])
  const task = await service.ended(id)
  expect(task).toMatchObject({ status: 'success', stdout: '24000\n', inputs: { in: { files: 24_000 } } })
  expect((await remove()).status).toBe(204)
})

describe('a large copy', () => {
  const BYTES = 300 * MIB
  const large = `head -c ${BYTES} /dev/urandom > large`

  test('does not keep others waiting, and ends with a kill', async () => {
    const { task_id } = await runtime.runScript(large)
    const killedInTime = async () => {
      const id = await runtime.submit({ ...script('true'), inputs: { in: from('large', task_id) } })
      const filled = join(runtime.dataDir, 'tasks', id, 'filled/in')
      await until(async () => existsSync(filled) || (await runtime.get(id)).status !== 'accepted')
      await runtime.json('/healthz')
      const { status } = await runtime.get(id)
      await runtime.kill(id)
      const ended = await runtime.ended(id)
      if (status !== 'accepted' || ended.status === 'success') return false
      expect(ended).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
      expect(existsSync(filled)).toBe(false)
      return true
    }
    await until(killedInTime, (isSo) => isSo) // a busy machine may look when the copy is over
  })

  test('begins anew after a kill of the service', async () => {
    using temp = tempDir()
    await using _ = endProcessesOf(temp.path)
    const filled = join(temp.path, 'tasks/t/filled/in')
    const sizeOf = () => (existsSync(filled) ? statSync(filled).size : 0)
    let hash = ''
    for (let kills = 0; kills < 3; kills++) {
      await using service = await startRuntime({ dataDir: temp.path })
      if (kills === 0) {
        await service.run({ task_id: 'source', ...script(large) })
        hash = sha256(readFileSync(workspaceOf('source', service).concat('/large')))
        await service.submit({ task_id: 't', ...script('sha256sum in'), inputs: { in: from('large', 'source') } })
      }
      await until(sizeOf, (size) => size > kills * 20 * MIB)
      await service.stop('SIGKILL')
      expect(sizeOf()).toBeLessThan(BYTES)
    }
    await using service = await startRuntime({ dataDir: temp.path })
    const task = await service.ended('t')
    expect(task).toMatchObject({ status: 'success', stdout: `${hash}  in\n` })
    expect(task.inputs!.in).toMatchObject({ sha256: hash, bytes: BYTES })
    expect((await service.eventTypes('t')).filter((type) => type === 'started')).toEqual(['started'])
    expect(readdirSync(join(temp.path, 'tasks/t'))).not.toContain('filled')
  })

  test.skipIf(!canMount)('on a full disk fails, and leaves nothing', async () => {
    using temp = tempDir()
    using disk = smallDisk(join(temp.path, 'disk'), 64 * MIB)
    await using service = await startRuntime({ dataDir: join(disk.path, 'data') })
    const source = await service.runScript(`head -c ${40 * MIB} /dev/urandom > large`)
    const id = await service.submit({ ...script('true'), inputs: { in: from('large', source.task_id) } })
    const task = await service.ended(id)
    expect(task).toMatchObject({ status: 'failed', error: { code: 'launch_failed' } })
    expect(task.error!.message).toMatch(`cannot copy large of task ${source.task_id} to inputs.in: ENOSPC`)
    expect(readdirSync(workspaceOf(id, service))).toEqual([])
    expect((await service.runScript(waitFor('/'))).status).toBe('success')
  })
})
