/** The list of what the executables contain, as SPDX 2.3 in JSON. Pure. */
import type { BundledPackage } from './bundled.ts'

export interface SbomInput {
  readonly version: string
  readonly bunVersion: string
  /** Seconds since 1970. */
  readonly time: number
  /** Commit of the sources. */
  readonly commit: string
  readonly packages: readonly BundledPackage[]
}

export function sbom({ version, bunVersion, time, commit, packages }: SbomInput): object {
  const own = packageEntry('taskmill', version, 'MIT', undefined)
  const others = [
    packageEntry('bun', bunVersion, 'MIT', `pkg:npm/bun@${bunVersion}`),
    ...packages.map(({ name, version, license }) =>
      packageEntry(name, version, license, `pkg:npm/${name.replace('@', '%40')}@${version}`),
    ),
  ]
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `taskmill-${version}`,
    documentNamespace: `https://spdx.org/spdxdocs/taskmill-${version}-${commit}`,
    creationInfo: {
      created: new Date(time * 1000).toISOString().replace('.000Z', 'Z'),
      creators: ['Tool: taskmill-release'],
    },
    packages: [own, ...others],
    relationships: [
      { spdxElementId: 'SPDXRef-DOCUMENT', relationshipType: 'DESCRIBES', relatedSpdxElement: own.SPDXID },
      ...others.map(({ SPDXID }) => ({
        spdxElementId: own.SPDXID,
        relationshipType: 'CONTAINS',
        relatedSpdxElement: SPDXID,
      })),
    ],
  }
}

const packageEntry = (name: string, version: string, license: string, purl: string | undefined) => ({
  SPDXID: `SPDXRef-${`${name}-${version}`.replaceAll(/[^\w.-]/g, '-')}`,
  name,
  versionInfo: version,
  downloadLocation: 'NOASSERTION',
  filesAnalyzed: false,
  licenseConcluded: license,
  licenseDeclared: license,
  copyrightText: 'NOASSERTION',
  ...(purl !== undefined && {
    externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
  }),
})
