import type { AnyJob } from './definitions.js'

/** The version of jobs whose data names none. */
const FIRST_VERSION = 1

/** A job needs a newer version of the program: its worker puts it back, and it costs no attempt. */
export class NewerVersionNeeded extends Error {
  override name = 'NewerVersionNeeded'
}

export function versionOfDefinition({ version = FIRST_VERSION }: Pick<AnyJob, 'version'>): number {
  return version
}

/** The data of a job with the version of its definition. Data of the first version names none. */
export function versionedData<Data>(job: Pick<AnyJob, 'version'>, data: Data): Data {
  const jobVersion = versionOfDefinition(job)
  return jobVersion === FIRST_VERSION ? data : { ...data, jobVersion }
}

/** Throws NewerVersionNeeded if the data of a job has a newer version than this program knows. */
export function requireKnownVersion(knownVersion: number, data: unknown): void {
  const version = typeof data === 'object' && data !== null && 'jobVersion' in data ? data.jobVersion : FIRST_VERSION
  if (typeof version !== 'number' || version > knownVersion) {
    throw new NewerVersionNeeded(`The job has version ${version}, this program knows ${knownVersion}.`)
  }
}
