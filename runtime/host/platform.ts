/** The kind of machine, for callers. It does not influence the service. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Platform } from '../../shared/contract/runtime-info.ts'
import { readText } from './read-text.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Files that container engines create in containers: docker, podman, systemd. */
const CONTAINER_FILES = ['.dockerenv', 'run/.containerenv', 'run/systemd/container']

/** Names in the cgroup path of a container, where it is visible from inside. */
const CONTAINER_CGROUP = /docker|containerd|kubepods|libpod|crio|lxc/

const SERVICE_ACCOUNT = 'var/run/secrets/kubernetes.io/serviceaccount'

/** `root` stands for the root of the host. */
export function platformOf(env: Environment, root = '/'): Platform {
  const kubernetes = isInKubernetes(env, root)
  return {
    os: process.platform,
    arch: process.arch,
    containerized: kubernetes || isInContainer(env, root), // a pod is made of containers
    kubernetes,
  }
}

/** systemd, podman and lxc set `container` for what they run. */
export const isInContainer = (env: Environment, root = '/'): boolean =>
  CONTAINER_FILES.some((file) => existsSync(join(root, file))) ||
  Boolean(env.container) ||
  CONTAINER_CGROUP.test(cgroupOfInit(root))

export const isInKubernetes = (env: Environment, root = '/'): boolean =>
  Boolean(env.KUBERNETES_SERVICE_HOST) || existsSync(join(root, SERVICE_ACCOUNT)) || /kubepods/.test(cgroupOfInit(root))

const cgroupOfInit = (root: string): string => readText(join(root, 'proc/1/cgroup')) ?? ''
