/** The objects of deploy/cluster/kubernetes/. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { YAML } from 'bun'
import { DEPLOY, readDeployed } from './deploy-files.ts'

const FOLDER = 'cluster/kubernetes'

export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly spec: object
}

interface Named {
  readonly name: string
}

/** A Deployment or a StatefulSet, as far as we write them. */
export interface PodOwner extends KubernetesObject {
  readonly spec: {
    readonly replicas: number
    readonly serviceName?: string
    readonly selector: { readonly matchLabels: object }
    readonly template: {
      readonly metadata: { readonly labels: object }
      readonly spec: {
        readonly terminationGracePeriodSeconds: number
        readonly securityContext: object
        readonly containers: readonly {
          readonly args: readonly string[]
          readonly env?: readonly Named[]
          readonly ports: readonly object[]
          readonly volumeMounts: readonly Named[]
        }[]
        readonly volumes: readonly (Named & { readonly secret?: { readonly secretName: string } })[]
      }
    }
    readonly volumeClaimTemplates?: readonly { readonly metadata: Named }[]
  }
}

export const kubernetesObjects = (): KubernetesObject[] =>
  readdirSync(join(DEPLOY, FOLDER))
    .sort()
    .flatMap((file) => YAML.parse(readDeployed(`${FOLDER}/${file}`)) as KubernetesObject[])
