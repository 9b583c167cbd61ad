/** Uses up all processes that an ordinary user may have, and takes each that becomes free within a millisecond. */
import { becoming } from './ordinary-user.ts'

/** RLIMIT_NPROC of the user: enough for a service and some tasks. */
export const PROCESS_LIMIT = 100

/** Runs the rest of a command line with that limit. */
export const withProcessLimit = ['prlimit', `--nproc=${PROCESS_LIMIT}:${PROCESS_LIMIT}`, '--']

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

export interface ProcessFiller extends AsyncDisposable {
  /** Gives all of them back. */
  readonly stop: () => Promise<void>
}

/** Returns when there is none left, or with `isOneSpared` a single one. */
export async function fillProcesses({ isOneSpared = false } = {}): Promise<ProcessFiller> {
  // Before all others, also on a busy machine: a launch must not find a place that has become free.
  const child = Bun.spawn(['nice', '-n', '-20', ...becoming(), ...withProcessLimit, 'perl', '-e', FILL], {
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
