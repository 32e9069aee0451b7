import { setTimeout as pause } from 'node:timers/promises'
import { type AnyJob, type DataOf, lookUpLinkedJob, lookUpPersonJob } from '../../jobs/definitions.js'
import { REFERENCE_LIMITS } from '../../jobs/waiting/limits.js'
import { Person } from '../../persistence/models/person.js'
import { findNewestAddresses } from '../../persistence/people/moved-people.js'
import type { EntityLink } from '../../protocol/mentions.js'
import { readPastedLink } from '../../protocol/pasted-links.js'
import type { Services } from '../../services/services.js'
import { ANONYMOUS_LOOKUP_LIMITS } from './limits.js'
import { isOtherHost, isRemoteAddress } from './pod-location.js'

/** A lookup of an object that another pod may have. */
export interface Lookup<Result> {
  /** Searches only this pod. */
  find(): Promise<Result | undefined>
  /** Requests the object from the other pod and waits for a limited time. Undefined: no other pod can have it. */
  requestFromPod?: () => Promise<LookUpResult<Result>>
}

type LookUpResult<Result> =
  | { readonly state: 'found'; readonly found: Result }
  | { readonly state: 'unknown' }
  /** The job has not finished in time; a later request gets its result. */
  | { readonly state: 'pending' }

/** The fetch of the link itself is the first one. */
const fetchesLeft = REFERENCE_LIMITS.fetchesOfMessage - 1

/** Looks up a person by address, or by the address of their page. A known person is returned at once, even with an outdated profile. */
export function lookUpPerson(services: Services, text: string): Lookup<Person> {
  const pastedLink = readPastedLink(text)
  if (pastedLink?.to === 'profile') return lookUpProfile(services, pastedLink)
  if (pastedLink?.to !== 'person') return { find: async () => undefined }
  const { address } = pastedLink
  const find = async () => followMove(services, address, await Person.byAddress(services.db, address))
  if (!isRemoteAddress(services, address)) return { find }
  return {
    find,
    requestFromPod: () =>
      runJob(services, { job: lookUpPersonJob, data: { address }, deduplicationKey: `look-up-${address}` }, find),
  }
}

/** The newest identity of a person who has moved from this address, else the person. */
async function followMove(
  { db }: Pick<Services, 'db'>,
  address: string,
  person: Person | undefined,
): Promise<Person | undefined> {
  if (person !== undefined && person.closedAt === null) return person
  const newest = (await findNewestAddresses(db, [address])).get(address)
  return newest === undefined ? person : Person.byAddress(db, newest)
}

function lookUpProfile(
  services: Services,
  { host, guid }: { readonly host: string; readonly guid: string },
): Lookup<Person> {
  const find = async () => {
    const person = await Person.query(services.db).findOne({ guid }).withGraphFetched('pod')
    return person && followMove(services, person.address, person)
  }
  if (!isOtherHost(services, host)) return { find }
  return {
    find,
    requestFromPod: () =>
      runJob(
        services,
        { job: lookUpPersonJob, data: { host, guid }, deduplicationKey: `look-up-${guid}-${host}` },
        find,
      ),
  }
}

/** Looks up the post that the pod at this host has under this guid; `find` searches this pod. */
export function lookUpPost<Result>(
  services: Services,
  { host, guid }: { readonly host: string; readonly guid: string },
  find: () => Promise<Result | undefined>,
): Lookup<Result> {
  if (!isOtherHost(services, host)) return { find }
  const fetchRequest = { type: 'post', guid, from: host, depth: 0, fetchesLeft } as const
  return {
    find,
    requestFromPod: () =>
      runJob(
        services,
        { job: lookUpLinkedJob, data: fetchRequest, deduplicationKey: `look-up-post-${guid}-${host}` },
        find,
      ),
  }
}

/** Looks up the entity of a link, at the pod of its author. `find` searches this pod. */
export function lookUpLinkedEntity<Result>(
  services: Services,
  { author, guid }: EntityLink,
  type: 'post' | 'poll',
  find: () => Promise<Result | undefined>,
): Lookup<Result> {
  if (!isRemoteAddress(services, author)) return { find }
  const fetchRequest = { type, guid, from: author, author, depth: 0, fetchesLeft }
  return {
    find,
    requestFromPod: () =>
      runJob(
        services,
        { job: lookUpLinkedJob, data: fetchRequest, deduplicationKey: `look-up-${type}-${guid}-${author}` },
        find,
      ),
  }
}

interface LookupJob<Definition extends AnyJob> {
  readonly job: Definition
  readonly data: DataOf<Definition>
  readonly deduplicationKey: string
}

/** Enqueues the job, unless it exists, and waits for its end for a limited time. */
async function runJob<Definition extends AnyJob, Result>(
  { jobs }: Pick<Services, 'jobs'>,
  { job, data, deduplicationKey }: LookupJob<Definition>,
  find: () => Promise<Result | undefined>,
): Promise<LookUpResult<Result>> {
  await jobs.add(job, data, { deduplicationKey })
  const until = performance.now() + ANONYMOUS_LOOKUP_LIMITS.waitMs
  for (;;) {
    await pause(ANONYMOUS_LOOKUP_LIMITS.pollIntervalMs)
    // The state of the job is read first: a job stores its result before it ends.
    const isOver = !(await jobs.isUnderWay(job.queue, deduplicationKey))
    const knownResult = await find()
    if (knownResult !== undefined) return { state: 'found', found: knownResult }
    if (isOver) return { state: 'unknown' }
    if (performance.now() >= until) return { state: 'pending' }
  }
}
