/**
 * Mounts a file system that never answers, for a service in its own mount namespace: FUSE without a process that reads
 * the requests. The service keeps /dev/fuse open, because the file system would otherwise fail instead of hanging.
 */
import { existsSync } from 'node:fs'

const MOUNT = process.arch === 'x64' ? 165 : 40

/** Why there can be none here, or undefined. */
export const missingHungMount =
  process.getuid?.() !== 0 ? 'only root can mount' : existsSync('/dev/fuse') ? undefined : 'there is no /dev/fuse'

const MOUNT_AND_RUN = `
  my $directory = shift; $^F = 255;
  open(my $fuse, "+<", "/dev/fuse") or die $!;
  my ($source, $type) = ("hung", "fuse");
  my $options = "fd=" . fileno($fuse) . ",rootmode=40000,user_id=0,group_id=0";
  syscall(${MOUNT}, $source, $directory, $type, 0, $options) == 0 or die $!;
  exec @ARGV`

/** Runs the rest of a command line where `directory` is such a mount; nobody else sees it. */
export const withHungMount = (directory: string): string[] => [
  ...['unshare', '--mount', '--propagation', 'private', 'perl', '-e', MOUNT_AND_RUN, directory],
]

/** Every look at it returns, for a service that was started with it. */
export function endHungMount(pid: number, directory: string): void {
  const { exitCode, stderr } = Bun.spawnSync(['nsenter', '-t', String(pid), '-m', 'umount', '-f', directory])
  // It stays mounted while somebody waits for it; but who waits is told.
  if (exitCode !== 0 && !stderr.toString().includes('busy')) throw new Error(stderr.toString())
}
