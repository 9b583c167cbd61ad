/**
 * Goal: no combination of namespaces gives a sandbox anything of another one, or of the service, but what it shares by choice.
 * Method: all 128 combinations run beside a neighbour that shares everything with the host. Each attacks that neighbour and the
 * service, and the neighbour attacks each. Of a root service nothing is open, as each sandbox has a user of its own. The tasks of
 * another service share its user: what they share of the host tells what is open. Source: docs/sandbox.md, What is promised.
 */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { NAMESPACES, type Namespace } from '../../shared/contract/runtime-request.ts'
import { ownUid } from '../support/ordinary-user.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(180_000)

const isRoot = process.getuid?.() === 0
const skipped = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
const OTHER_UID = ownUid(96_000)

type Combination = Readonly<Record<Namespace, boolean>>

const combination = (bits: number): Combination =>
  Object.fromEntries(NAMESPACES.map((name, i) => [name, (bits & (1 << i)) !== 0])) as Combination
const COMBINATIONS = Array.from({ length: 2 ** NAMESPACES.length }, (_, bits) => combination(bits))
const NEIGHBOUR = combination(0)

/** Run beside each other, with one neighbour. */
const AT_A_TIME = 16
const flags = ['--max-running-tasks', String(AT_A_TIME + 1)]

const CALLS =
  process.arch === 'x64'
    ? { ptrace: 101, prlimit: 302, readMemory: 310, compare: 312 }
    : { ptrace: 117, prlimit: 261, readMemory: 270, compare: 272 }
const CALL_PIDFD_OPEN = 434
const CALL_PIDFD_GETFD = 438

/**
 * Makes a file and a shared memory of its own and tells the id of the memory. Then it tries what may be open of each target, a
 * line `PID FILE MEMORY`, and tells what was. Of its child all is. It stays as a target of others until it is let go.
 */
const PROGRAM = `
use strict; $| = 1; umask 077;
open my $own, '>', 'secret' or die; print $own 'mine'; close $own;
my $memory = shmget 0, 4096, 01600; defined $memory or die $!;
my $mark = sprintf '%08x', rand 2 ** 32;
shmwrite $memory, $mark, 0, 8 or die $!;
print "$memory\\n";
until (-e 'targets') { select undef, undef, undef, 0.02 }
my $byte = ' ';
my $here = pack 'JJ', unpack('J', pack 'p', $byte), 1;
my $there = pack 'JJ', 4096, 1;
sub called { $! = 0; my $got = syscall $_[0], @_[1 .. $#_]; return $got >= 0 || $!{EFAULT} }
my $child = fork // die;
if ($child == 0) { sleep 1000; exit }
open my $targets, '<', 'targets' or die;
for (<$targets>, "$child /nowhere\\n") {
  my ($pid, $file, $shm) = split;
  $pid += 0; # else a call gets its text
  my $read = '';
  my %open = (
    signal => !!(kill(0, $pid)),
    limits => !!(called(${CALLS.prlimit}, $pid, 7, 0, ' ' x 16)),
    trace => !!(called(${CALLS.ptrace}, 0x4206, $pid, 0, 0)),
    memory => !!(called(${CALLS.readMemory}, $pid, $here, 1, $there, 1, 0)),
    compare => !!(called(${CALLS.compare}, $pid, $$ + 0, 1, 0, 0)),
    descriptor => !!do { my $fd = syscall ${CALL_PIDFD_OPEN}, $pid, 0; $fd >= 0 && syscall(${CALL_PIDFD_GETFD}, $fd, 1, 0) >= 0 },
    environment => !!do { open my $f, '<', "/proc/$pid/environ"; $f && <$f> },
    directory => !!(opendir(my $cwd, "/proc/$pid/cwd/")),
    output => !!(open(my $out, '>>', "/proc/$pid/fd/1")),
    file => !!(open(my $found, '<', $file)),
    'shared memory' => !!(length $shm && shmread($shm, $read, 0, 8) && $read ne $mark),
  );
  my $name = $pid == $child ? 'child' : $pid;
  print "$name: $_\\n" for grep { $open{$_} } sort keys %open;
}
kill 'KILL', $child;
print "done\\n";
until (-e 'go') { select undef, undef, undef, 0.02 }
`

interface Running {
  readonly id: string
  readonly namespaces: Combination
  readonly workspace: string
  readonly pid: number
  readonly memory: string
}

/** Only a root service can leave the user namespace out: it has users for its tasks. */
async function start(runtime: Runtime, namespaces: Combination, hasUsers: boolean): Promise<Running> {
  const id = await runtime.submit({
    execution: { kind: 'script', script: PROGRAM, interpreter: ['/usr/bin/perl'] },
    sandbox: { profile: 'linux_sandbox', namespaces },
  })
  const memory = (await runtime.printed(id)).stdout!.trim()
  const { artifacts, pid, execution_plan } = await runtime.get(id)
  expect(execution_plan.effective_sandbox.namespaces).toEqual({ ...namespaces, user: namespaces.user || !hasUsers })
  return { id, namespaces, workspace: join(artifacts.task_dir, 'workspace'), pid: pid!, memory }
}

const targetOf = ({ pid, workspace, memory }: Running) => `${pid} ${join(workspace, 'secret')} ${memory}\n`

/** At once: the task looks for the file, and reads it. */
function tell({ workspace }: Running, targets: string): void {
  writeFileSync(join(workspace, 'targets.new'), targets)
  renameSync(join(workspace, 'targets.new'), join(workspace, 'targets'))
}

/** What it tells of its attacks. */
const outputOf = ({ workspace }: Running) =>
  until(
    () => readFileSync(join(workspace, '../stdout.log'), 'utf8'),
    (text) => text.endsWith('done\n'),
  )

/** What tasks with one user have of each other, by what they share with the host. */
function openBetween(attacker: Combination, target: Combination | 'service'): string[] {
  const isMemoryShared = target !== 'service' && !attacker.ipc && !target.ipc
  return [
    ...(attacker.mount || target === 'service' ? [] : ['file']),
    ...(attacker.pid ? [] : ['limits']),
    ...(isMemoryShared ? ['shared memory'] : []),
    ...(attacker.pid ? [] : ['signal']),
  ]
}

/** What the task has of its own child. A /proc of the host does not have it by its number in a pid namespace. */
function openOfChild({ mount, pid }: Combination): string[] {
  const inProc = mount || !pid ? ['directory', 'environment', 'output'] : []
  return ['compare', 'descriptor', 'limits', 'memory', 'signal', 'trace', ...inProc].toSorted()
}

const outputWith = ({ memory, namespaces }: Running, open: readonly string[]) =>
  [memory, ...open, ...openOfChild(namespaces).map((what) => `child: ${what}`), 'done', ''].join('\n')

async function attackEachOther(runtime: Runtime, combinations: readonly Combination[], hasUsers: boolean) {
  const neighbour = await start(runtime, NEIGHBOUR, hasUsers)
  const tasks = await Promise.all(combinations.map((namespaces) => start(runtime, namespaces, hasUsers)))
  const service = `${runtime.process.pid} /nowhere\n`
  for (const task of tasks) tell(task, `${targetOf(neighbour)}${service}`)
  tell(neighbour, tasks.map(targetOf).join(''))
  for (const task of tasks) {
    const open = hasUsers
      ? []
      : [
          ...openBetween(task.namespaces, NEIGHBOUR).map((what) => `${neighbour.pid}: ${what}`),
          ...openBetween(task.namespaces, 'service').map((what) => `${runtime.process.pid}: ${what}`),
        ]
    expect([task.namespaces, await outputOf(task)]).toEqual([task.namespaces, outputWith(task, open)])
  }
  const open = hasUsers
    ? []
    : tasks.flatMap(({ pid, namespaces }) => openBetween(NEIGHBOUR, namespaces).map((what) => `${pid}: ${what}`))
  expect(await outputOf(neighbour)).toBe(outputWith(neighbour, open))
  for (const { id, workspace } of [...tasks, neighbour]) {
    writeFileSync(join(workspace, 'go'), '')
    expect((await runtime.ended(id)).status).toBe('success')
  }
}

async function tryAll(runtime: Runtime, hasUsers: boolean) {
  for (let first = 0; first < COMBINATIONS.length; first += AT_A_TIME) {
    await attackEachOther(runtime, COMBINATIONS.slice(first, first + AT_A_TIME), hasUsers)
  }
}

test.skipIf(!isRoot || missingSandbox !== undefined)(`a root service keeps all apart${skipped}`, async () => {
  await using runtime = await startRuntime({ flags })
  await tryAll(runtime, true)
})

test.skipIf(missingSandbox !== undefined)(`another service shares only its user${skipped}`, async () => {
  const asUser = {
    through: ['setpriv', `--reuid=${OTHER_UID}`, `--regid=${OTHER_UID}`, '--clear-groups'],
    ownerUid: OTHER_UID,
  }
  await using runtime = await startRuntime({ flags, ...(isRoot && asUser) })
  await tryAll(runtime, false)
})
