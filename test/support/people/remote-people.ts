import { newGuid } from '../../../src/domain/new-guid.js'
import { Person, type Profile } from '../../../src/persistence/models/person.js'
import { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import { restrictNewPerson } from '../../../src/persistence/moderation/pod-rule-restrictions.js'
import type { Services } from '../../../src/services/services.js'
import type { FakePerson } from '../federation/fake-pods.js'
import { readKey } from '../pods/fixed-key-crypto.js'

/** A person of a fake pod, with the id of their row on the pod under test. */
export type RemotePerson = FakePerson & { readonly id: number }

interface RemotePersonFields {
  readonly guid?: string
  readonly publicKey?: string
  readonly profile?: Partial<Pick<Profile, 'firstName' | 'lastName'>>
  readonly pod?: Partial<Pick<RemotePod, 'port' | 'ssl'>>
}

/** Stores a person of another pod, and the pod if it is unknown. */
export async function addRemotePerson(
  { db }: Pick<Services, 'db'>,
  address: string,
  fields: RemotePersonFields = {},
): Promise<Person> {
  return db.transaction(async (transaction) => {
    const [, host = ''] = address.split('@')
    const home = await RemotePod.query(transaction)
      .insert({ host, ssl: true, ...fields.pod })
      .onConflict(['host', 'port'])
      .merge(['host'])
      .returning('*')
    const person = await Person.insertWithProfile(
      transaction,
      {
        guid: fields.guid ?? newGuid(),
        address,
        publicKey: fields.publicKey ?? readKey('4.public.pem'),
        podId: home.id,
      },
      fields.profile,
    )
    await restrictNewPerson(transaction, person.id)
    return person
  })
}

/** The host of the person's pod, with its port if the address has one. */
export function hostOf({ address }: Pick<Person, 'address'>): string {
  return address.split('@')[1] ?? ''
}
