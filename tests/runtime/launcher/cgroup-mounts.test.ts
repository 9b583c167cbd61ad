/** Goal: the control groups of a process are where the kernel says. Method: what it says, on machines of each kind. */
import { expect, test } from 'bun:test'
import { type OwnCgroups, ownCgroups } from '../../../runtime/launcher/cgroup-mounts.ts'

const V2 = '30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec shared:4 - cgroup2 cgroup2 rw,nsdelegate'
const V1 = [
  '31 30 0:27 / /sys/fs/cgroup/pids rw,nosuid shared:5 - cgroup cgroup rw,pids',
  '32 30 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:6 - cgroup cgroup rw,cpu,cpuacct',
  '33 30 0:29 / /sys/fs/cgroup/memory rw,nosuid shared:7 master:3 - cgroup cgroup rw,memory',
].join('\n')
const OTHERS = '22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n'

const at = (mountPoint: string, below: string) => ({ mountPoint, path: mountPoint + below })

const cases: [string, string, string, OwnCgroups][] = [
  [
    'version 2',
    '0::/system.slice/taskmill.service\n',
    OTHERS + V2,
    { v1: {}, v2: at('/sys/fs/cgroup', '/system.slice/taskmill.service') },
  ],
  ['version 2, at the top', '0::/\n', OTHERS + V2, { v1: {}, v2: at('/sys/fs/cgroup', '') }],
  [
    'version 1',
    '7:cpu,cpuacct:/x\n4:memory:/a/b\n2:pids:/\n1:name=systemd:/init\n',
    OTHERS + V1,
    { v1: { pids: at('/sys/fs/cgroup/pids', ''), memory: at('/sys/fs/cgroup/memory', '/a/b') } },
  ],
  [
    'both: version 2 has a mount but no controllers of ours',
    '4:memory:/a\n2:pids:/a\n0::/a\n',
    `${OTHERS}${V1}\n${V2.replace('/sys/fs/cgroup', '/sys/fs/cgroup/unified')}`,
    {
      v1: { pids: at('/sys/fs/cgroup/pids', '/a'), memory: at('/sys/fs/cgroup/memory', '/a') },
      v2: at('/sys/fs/cgroup/unified', '/a'),
    },
  ],
  [
    'two controllers in one hierarchy',
    '4:memory,pids:/a\n',
    '33 30 0:29 / /cg rw - cgroup cgroup rw,memory,pids',
    { v1: { pids: at('/cg', '/a'), memory: at('/cg', '/a') } },
  ],
  [
    'a container that sees only its own part of the tree',
    '4:memory:/docker/4711\n2:pids:/docker/4711/sub\n',
    V1.replaceAll(' / /sys', ' /docker/4711 /sys'),
    { v1: { pids: at('/sys/fs/cgroup/pids', '/sub'), memory: at('/sys/fs/cgroup/memory', '') } },
  ],
  [
    'a part of the tree that is not ours',
    '4:memory:/docker/4712\n',
    V1.replaceAll(' / /sys', ' /docker/4711 /sys'),
    { v1: {} },
  ],
  ['a group outside of the namespace', '4:memory:/../other\n0::/..\n', `${V1}\n${V2}`, { v1: {} }],
  [
    'a mount point with a space',
    '2:pids:/a\n',
    '31 30 0:27 / /my\\040cg rw - cgroup cgroup rw,pids',
    { v1: { pids: at('/my cg', '/a') } },
  ],
  ['no mount', '4:memory:/a\n0::/a\n', OTHERS, { v1: {} }],
  [
    'a controller of version 1 that is not mounted',
    '4:memory:/a\n0::/a\n',
    V2,
    { v1: {}, v2: at('/sys/fs/cgroup', '/a') },
  ],
  ['nothing at all', '', '', { v1: {} }],
  ['lines of another form', 'x\n4:memory\n0::a\n', 'x\n- \n1 2 3\n', { v1: {} }],
]

test.each(cases)('own groups, %s', (_, procCgroup, mountinfo, expected) => {
  expect(ownCgroups(procCgroup, mountinfo)).toEqual(expected)
})
