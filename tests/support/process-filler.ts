/** Uses up all processes that the tasks of an ordinary user may have, and takes each that becomes free within a millisecond. */
import { processesOfTasks } from '../../shared/process/process-reserve.ts'
import { becoming } from './ordinary-user.ts'

/** RLIMIT_NPROC of the service: enough for it and some tasks. */
const PROCESS_LIMIT = 132n

/** Runs the rest of a command line with a limit on the processes of its user: that of the service. */
export const withProcessLimit = (limit = PROCESS_LIMIT): string[] => ['prlimit', `--nproc=${limit}:${limit}`, '--']

/** A shell script that forks for ever, as its children do. It says when it cannot any more. */
export const FORK_BOMB = `echo ready; exec perl -e '$| = 1; while (1) { next if defined fork; print "full\\n"; sleep 1 }'`

/** Says `full` once there are none left. A line of input makes it give one back and take no more; it then says `spared`. */
const FILL = `
  $| = 1; my ($said, @children);
  for (;;) {
    my $pid = fork;
    if (!defined $pid) {
      print "full\\n" unless $said++;
      my $ready = ''; vec($ready, 0, 1) = 1;
      last if select($ready, undef, undef, 0.001);
    } elsif ($pid == 0) { sleep 600; exit }
    else { push @children, $pid }
  }
  if (defined <STDIN>) {
    my $spared = shift @children; kill 9, $spared; waitpid $spared, 0;
    print "spared\\n"; 1 while <STDIN>;
  }
  kill 9, @children; waitpid $_, 0 for @children;`

interface ProcessFiller extends AsyncDisposable {
  /** Gives all of them back. */
  readonly stop: () => Promise<void>
}

interface Filling {
  /** Take those, too, that the service keeps for itself. */
  readonly isReserveTaken?: boolean
  readonly isOneSpared?: boolean
}

/** Returns when there is none left for tasks, or with `isOneSpared` a single one. */
export async function fillProcesses({
  isReserveTaken = false,
  isOneSpared = false,
}: Filling = {}): Promise<ProcessFiller> {
  const limit = isReserveTaken ? PROCESS_LIMIT : processesOfTasks(PROCESS_LIMIT)
  // Before all others, also on a busy machine: a launch must not find a place that has become free.
  const child = Bun.spawn(['nice', '-n', '-20', ...becoming(), ...withProcessLimit(limit), 'perl', '-e', FILL], {
    cwd: '/',
    stdin: 'pipe',
    stdout: 'pipe',
  })
  const said = child.stdout.getReader()
  await said.read()
  if (isOneSpared) {
    child.stdin.write('\n')
    child.stdin.flush()
    await said.read()
  }
  const stop = async () => {
    child.stdin.end()
    await child.exited
  }
  return { stop, [Symbol.asyncDispose]: stop }
}
