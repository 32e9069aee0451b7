import { readConfig } from '../../../src/config/config.js'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { Person } from '../../../src/persistence/models/person.js'
import { User } from '../../../src/persistence/models/user.js'
import { type OpenPod, openPod } from '../../../src/pod/open-pod.js'
import type { Pod } from '../../../src/pod/pod.js'
import { testLog } from '../assertions/test-log.js'
import { createTestDatabase } from '../databases/test-database.js'
import { type FakePods, startFakePods } from '../federation/fake-pods.js'
import type { LocalUser, RemotePerson } from '../federation/inbound-messages.js'
import { byName } from '../people/by-name.js'
import { addRemotePerson, countRows } from '../people/remote-people.js'
import { fixedKeyCrypto } from './fixed-key-crypto.js'

/** A pod with a real database and queue, and the other pods that it meets. */
export interface FederationPod extends Pod {
  readonly fakePods: FakePods
  /** The same pod at another time of day. */
  at(time: Date): Pod
  /** Makes them, one after the other. */
  localUsers<Name extends string>(...names: Name[]): Promise<Record<Name, LocalUser>>
  /** Of people elsewhere these alone are known from then on: `quin@q.example`, `remy@r.example`. */
  remotePeople<Name extends string>(...names: Name[]): Promise<Record<Name, RemotePerson>>
  /** One more who is known. */
  addRemotePerson(address: string): Promise<RemotePerson>
  /** How many rows each of these tables has. */
  rows(...tables: string[]): Promise<readonly number[]>
  /** Leaves nothing in these tables, `posts, photos`, nor what refers to it. */
  empty(tables: string): Promise<void>
  close(): Promise<void>
}

/** The pod under test is `pod.example`, wherever others are. */
export async function openFederationPod(): Promise<FederationPod> {
  const database = await createTestDatabase()
  const config = readConfig({
    POD_URL: 'https://pod.example',
    DATABASE_URL: database.url,
    DATABASE_POOL: '8',
    SECRET_KEY: 'a key that is only good for tests',
  })
  const log = testLog()
  const opened: OpenPod = await openPod(config, 'worker', { crypto: fixedKeyCrypto(), log })
  const fakePods = await startFakePods()
  const pod = { ...opened, remote: fakePods.remotePods() }

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
      await opened.close()
      await fakePods.close()
      await database.drop()
    },
  }
}

export async function addLocalUser(pod: Pod, username: string): Promise<LocalUser> {
  const { guid, address } = await createUser(pod, { username, password: `the password of ${username}` })
  const { id: userId, personId: id } = await User.byUsername(pod.db, username).throwIfNotFound()
  const { publicKey } = await Person.query(pod.db).findById(id).throwIfNotFound()
  return { userId, id, guid, address, publicKey }
}
