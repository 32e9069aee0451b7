interface LockedPackage {
  readonly version?: string
  readonly license?: string
  /** Only needed to build and to test. */
  readonly dev?: boolean
}

interface LockFile {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

/** What a running pod is made of, beside itself: every package that is installed for it, on any platform, with its licence. */
export function licencesPage({ packages }: LockFile): string {
  const used = Object.entries(packages)
    .filter(([place, { dev }]) => place !== '' && dev !== true)
    .map(([place, { version = '', license = 'unknown' }]) => ({ name: nameOf(place), version, license }))
  const byLicence = new Map<string, string[]>()
  for (const { name, version, license } of used) {
    byLicence.set(license, [...(byLicence.get(license) ?? []), `${name} ${version}`])
  }
  const sections = [...byLicence].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return [
    '# Licences',
    '',
    'The pod itself is AGPL-3.0-or-later ([LICENSE](../LICENSE)). It runs with these packages; what is only for building and testing',
    'is not among them. Made by `npm run licences` from the lock file; a test keeps it in step.',
    '',
    ...sections.flatMap(([licence, names]) => [
      `## ${licence}`,
      '',
      ...[...new Set(names)].toSorted().map((name) => `- ${name}`),
      '',
    ]),
  ].join('\n')
}

/** The last of the folders it is nested in. */
function nameOf(place: string): string {
  return place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
}
