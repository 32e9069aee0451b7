import { readConfig } from '../../../src/config/config.js'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { Person } from '../../../src/persistence/models/person.js'
import { User } from '../../../src/persistence/models/user.js'
import { type OpenPod, openPod } from '../../../src/pod/open-pod.js'
import type { Pod } from '../../../src/pod/pod.js'
import { testLog } from '../assertions/test-log.js'
import { createTestDatabase } from '../databases/test-database.js'
import { type FakePods, startFakePods } from '../federation/fake-pods.js'
import type { LocalPerson, Stranger } from '../federation/inbound-messages.js'
import { byName } from '../people/by-name.js'
import { addStranger, countRows } from '../people/remote-people.js'
import { cannedCrypto } from './fixed-key-crypto.js'

/** A pod with a real database and queue, and the other pods that it meets. */
export interface MeetingPod extends Pod {
  readonly others: FakePods
  /** The same pod at another time of day. */
  at(time: Date): Pod
  /** Makes them, one after the other. */
  locals<Name extends string>(...names: Name[]): Promise<Record<Name, LocalPerson>>
  /** Of people elsewhere these alone are known from then on: `quin@q.example`, `remy@r.example`. */
  strangers<Name extends string>(...names: Name[]): Promise<Record<Name, Stranger>>
  /** One more who is known. */
  meet(address: string): Promise<Stranger>
  /** How many rows each of these tables has. */
  rows(...tables: string[]): Promise<readonly number[]>
  /** Leaves nothing in these tables, `posts, photos`, nor what refers to it. */
  empty(tables: string): Promise<void>
  close(): Promise<void>
}

/** The pod under test is `pod.example`, wherever others are. */
export async function openMeetingPod(): Promise<MeetingPod> {
  const database = await createTestDatabase()
  const config = readConfig({
    POD_URL: 'https://pod.example',
    DATABASE_URL: database.url,
    DATABASE_POOL: '8',
    SECRET_KEY: 'a key that is only good for tests',
  })
  const log = testLog()
  const opened: OpenPod = await openPod(config, 'worker', { crypto: cannedCrypto(), log })
  const others = await startFakePods()
  const pod = { ...opened, remote: others.remotePods() }

  async function meet(address: string): Promise<Stranger> {
    const person = others.person(address)
    const { id } = await addStranger(pod, address, { guid: person.guid, publicKey: person.publicKey })
    return { ...person, id }
  }

  return {
    ...pod,
    others,
    at: (time) => ({ ...pod, now: () => time }),
    locals: (...names) => byName(names, (name) => addLocal(pod, name)),
    async strangers(...names) {
      await pod.db('people').whereNotNull('podId').delete()
      return byName(names, (name) => meet(`${name}@${name.charAt(0)}.example`))
    },
    meet,
    rows: (...tables) => countRows(pod, tables),
    empty: (tables) => pod.db.raw(`truncate ${tables} cascade`),
    async close() {
      await opened.close()
      await others.close()
      await database.drop()
    },
  }
}

export async function addLocal(pod: Pod, username: string): Promise<LocalPerson> {
  const { guid, address } = await createUser(pod, { username, password: `the password of ${username}` })
  const { id: userId, personId: id } = await User.byUsername(pod.db, username).throwIfNotFound()
  const { publicKey } = await Person.query(pod.db).findById(id).throwIfNotFound()
  return { userId, id, guid, address, publicKey }
}
