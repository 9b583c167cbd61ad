/**
 * Goal: Kubernetes would accept the manifests of deploy/cluster/. Method: the published schemas check them, and the
 * published types find fields that there are not, which the schemas let pass. The package `kubernetes-models` has both,
 * made from the OpenAPI document of Kubernetes.
 */
import { describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/deploy-files.ts'
import { type KubernetesObject, kubernetesObjects } from '../support/kubernetes.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

/** The module of the kind of an object. */
const moduleOf = ({ apiVersion, kind }: KubernetesObject): string => `kubernetes-models/${apiVersion}/${kind}`

const objects = kubernetesObjects()

/** What the schema says of an object; undefined if it finds nothing. */
async function faultOf(object: KubernetesObject): Promise<string | undefined> {
  const { [object.kind]: Model } = await import(moduleOf(object))
  try {
    new Model(object).validate()
    return undefined
  } catch (error) {
    return String(error)
  }
}

/** What the compiler says of an object that is declared to be of its kind. */
async function typeFaultsOf(all: readonly KubernetesObject[]): Promise<string> {
  mkdirSync(join(ROOT, 'dist'), { recursive: true })
  using dir = tempDir(join(ROOT, 'dist')) // below the packages
  const lines = all.map(
    (object, i) =>
      `import type { I${object.kind} as Kind${i} } from '${moduleOf(object)}'\nexport const object${i}: Kind${i} = ${JSON.stringify(object)}\n`,
  )
  writeFileSync(join(dir.path, 'objects.ts'), lines.join(''))
  const options = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    module: 'esnext',
    moduleResolution: 'bundler',
    types: [],
  }
  writeFileSync(join(dir.path, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['objects.ts'] }))
  const child = Bun.spawn([join(ROOT, 'node_modules/.bin/tsc'), '-p', dir.path], {
    ...{ cwd: dir.path, env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const said = await new Response(child.stdout).text()
  await child.exited
  return said
}

describe.each(objects.map((object) => [`${object.kind} ${object.metadata.name}`, object] as const))(
  '%s',
  (_, object) => {
    test('is as its schema says', async () => {
      expect(await faultOf(object)).toBeUndefined()
    })
  },
)

test('a schema finds what is missing or of another type', async () => {
  const deployment = objects.find(({ kind }) => kind === 'Deployment')!
  expect(await faultOf({ ...deployment, spec: {} })).toContain(
    "must have required property 'selector'".replaceAll("'", ''),
  )
  expect(await faultOf({ ...deployment, spec: { ...deployment.spec, replicas: 'two' } })).toContain('replicas')
})

test('no object has a field that its kind lacks', async () => {
  expect(await typeFaultsOf(objects)).toBe('')
  const [first] = objects
  const misspelt = { ...first!, spec: { ...first!.spec, replica: 2 } }
  expect(await typeFaultsOf([misspelt as KubernetesObject])).toContain('"replica"')
})
