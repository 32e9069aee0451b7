import type { Services } from '../../../src/services/services.js'
import { countRows } from '../databases/rows.js'
import { type FakePods, startFakePods } from '../federation/fake-pods.js'
import { byName } from '../people/by-name.js'
import { addLocalUser, type LocalUser } from '../people/local-users.js'
import type { RemotePerson } from '../people/remote-people.js'
import { addRemotePerson } from '../people/remote-people.js'
import { buildPod } from './build-pod.js'

/** The pod `pod.example` without web application and workers, and fake pods around it. */
export interface FederationPod extends Services {
  readonly fakePods: FakePods
  /** The same pod at another time. */
  at(time: Date): Services
  /** Creates local users, one after the other. */
  localUsers<Name extends string>(...names: Name[]): Promise<Record<Name, LocalUser>>
  /** Stores these people of fake pods, `quin@q.example`, `remy@r.example`, and deletes all other remote people. */
  remotePeople<Name extends string>(...names: Name[]): Promise<Record<Name, RemotePerson>>
  /** Stores one more person of a fake pod. */
  addRemotePerson(address: string): Promise<RemotePerson>
  /** The number of rows in each of these tables. */
  rows(...tables: string[]): Promise<readonly number[]>
  /** Truncates these tables, `posts, photos`, and all tables that refer to them. */
  empty(tables: string): Promise<void>
  close(): Promise<void>
}

export async function openFederationPod(): Promise<FederationPod> {
  const fakePods = await startFakePods()
  const options = { fakePods, process: 'worker', web: false, environment: { DATABASE_POOL: '8' } } as const
  const { pod, close: closePod } = await buildPod(options)

  async function addPerson(address: string): Promise<RemotePerson> {
    const person = fakePods.person(address)
    const { id } = await addRemotePerson(pod, address, { guid: person.guid, publicKey: person.publicKey })
    return { ...person, id }
  }

  return {
    ...pod,
    fakePods,
    at: (time) => ({ ...pod, now: () => time }),
    localUsers: (...names) => byName(names, (name) => addLocalUser(pod, name)),
    async remotePeople(...names) {
      await pod.db('people').whereNotNull('podId').delete()
      return byName(names, (name) => addPerson(`${name}@${name.charAt(0)}.example`))
    },
    addRemotePerson: addPerson,
    rows: (...tables) => countRows(pod, tables),
    empty: (tables) => pod.db.raw(`truncate ${tables} cascade`),
    async close() {
      await closePod()
      await fakePods.close()
    },
  }
}
