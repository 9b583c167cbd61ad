/** Goal: our cgroup is found where it is mounted. Method: /proc files of several kinds of hosts; then this one. */
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ownCgroup } from '../../../runtime/host/own-cgroup.ts'
import { fakeRoot } from '../../support/fake-root.ts'

const V1_MOUNTS = `
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 master:2 - cgroup cgroup rw,memory
33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
`
const V2_MOUNTS = '30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n'

test.each<[string, string, string, string, { version: number; directories: string[] } | null]>([
  [
    'version 1',
    'memory',
    '9:name=systemd:/\n4:memory:/a/b\n0::/\n',
    V1_MOUNTS,
    {
      version: 1,
      directories: ['sys/fs/cgroup/memory/a/b', 'sys/fs/cgroup/memory/a', 'sys/fs/cgroup/memory'],
    },
  ],
  [
    'version 1, two controllers in one hierarchy',
    'cpuacct',
    '2:cpu,cpuacct:/\n0::/x\n',
    V1_MOUNTS,
    { version: 1, directories: ['sys/fs/cgroup/cpu,cpuacct'] },
  ],
  [
    'version 2 beside it, for a controller that version 1 does not have',
    'pids',
    '4:memory:/a/b\n0::/svc\n',
    V1_MOUNTS,
    { version: 2, directories: ['sys/fs/cgroup/unified/svc', 'sys/fs/cgroup/unified'] },
  ],
  [
    'version 2',
    'memory',
    '0::/system.slice/taskmill.service\n',
    V2_MOUNTS,
    {
      version: 2,
      directories: ['sys/fs/cgroup/system.slice/taskmill.service', 'sys/fs/cgroup/system.slice', 'sys/fs/cgroup'],
    },
  ],
  ['version 2, a namespace of its own', 'memory', '0::/\n', V2_MOUNTS, { version: 2, directories: ['sys/fs/cgroup'] }],
  [
    'version 2, moved out of its namespace',
    'memory',
    '0::/../other\n',
    V2_MOUNTS,
    { version: 2, directories: ['sys/fs/cgroup'] },
  ],
  [
    'version 1 in a container that sees only its own part',
    'memory',
    '4:memory:/docker/3f/child\n',
    '35 31 0:32 /docker/3f /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n',
    { version: 1, directories: ['sys/fs/cgroup/memory/child', 'sys/fs/cgroup/memory'] },
  ],
  [
    'version 1 in a container whose path is told as from outside',
    'memory',
    '4:memory:/kubepods/pod1/3f\n',
    '35 31 0:32 /kubepods/pod1/3f4 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n',
    { version: 1, directories: ['sys/fs/cgroup/memory'] },
  ],
  [
    'a mount point with a space',
    'memory',
    '0::/a\n',
    '30 23 0:26 / /cgroups\\040here rw - cgroup2 none rw\n',
    { version: 2, directories: ['cgroups here/a', 'cgroups here'] },
  ],
  ['nothing mounted', 'memory', '4:memory:/\n', V2_MOUNTS, null],
  ['no cgroups', 'memory', '', '', null],
])('%s', (_, controller, cgroup, mountinfo, expected) => {
  using root = fakeRoot({ 'proc/self/cgroup': cgroup, 'proc/self/mountinfo': mountinfo })
  const directories = expected?.directories.map((directory) => join(root.path, directory))
  expect(ownCgroup(controller, root.path)).toEqual(expected && ({ ...expected, directories } as never))
})

test('no files at all', () => {
  using root = fakeRoot({})
  expect(ownCgroup('memory', root.path)).toBeNull()
})

const here = ownCgroup('pids')
test.skipIf(here === null)('the one of this process is there (skipped: no pids cgroup here)', () => {
  for (const directory of here!.directories) expect(existsSync(join(directory, 'cgroup.procs'))).toBe(true)
})
