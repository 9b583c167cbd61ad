/** Goal: the marks of containers and pods are recognised. Method: a directory with just that mark in it. */
import { expect, test } from 'bun:test'
import { platformOf } from '../../../runtime/host/platform.ts'
import { fakeRoot } from '../../support/fake-root.ts'

type Env = Record<string, string>

test.each<[string, Record<string, string>, Env, [containerized: boolean, kubernetes: boolean]]>([
  ['nothing', {}, {}, [false, false]],
  ['a plain machine', { 'proc/1/cgroup': '0::/init.scope\n' }, { container: '' }, [false, false]],
  ['docker’s file', { '.dockerenv': '' }, {}, [true, false]],
  ['podman’s file', { 'run/.containerenv': '' }, {}, [true, false]],
  ['systemd’s file', { 'run/systemd/container': 'lxc' }, {}, [true, false]],
  ['the variable', {}, { container: 'podman' }, [true, false]],
  ['docker’s cgroup', { 'proc/1/cgroup': '4:memory:/docker/3f1c\n' }, {}, [true, false]],
  ['podman’s cgroup', { 'proc/1/cgroup': '0::/machine.slice/libpod-3f1c.scope\n' }, {}, [true, false]],
  ['a pod’s cgroup', { 'proc/1/cgroup': '0::/kubepods.slice/kubepods-pod3f.slice\n' }, {}, [true, true]],
  ['a pod’s account', { 'var/run/secrets/kubernetes.io/serviceaccount/': '' }, {}, [true, true]],
  ['a pod’s variable', {}, { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, [true, true]],
])('%s', (_, files, env, [containerized, kubernetes]) => {
  using root = fakeRoot(files)
  expect(platformOf(env, root.path)).toEqual({ os: process.platform, arch: process.arch, containerized, kubernetes })
})

test('the host of these tests can be asked', () => {
  expect(platformOf(process.env)).toMatchObject({ os: process.platform, arch: process.arch })
})
