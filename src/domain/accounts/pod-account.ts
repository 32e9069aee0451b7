import type { Knex } from 'knex'
import { findPodAccount, insertPodAccount, type PodAccountRow } from '../../persistence/accounts/pod-account.js'
import { Person } from '../../persistence/models/person.js'
import type { Services } from '../../services/services.js'
import { newGuid } from '../new-guid.js'

/** The account that signs for the pod. It is not a person: it has no stream and no contacts, and cannot sign in. */
export type PodAccount = Pick<PodAccountRow, 'guid' | 'address'>

/** `pod-account`, and `pod-account-2` and so on, where a person had the name before it was reserved. */
const RESERVED_NAME = /^pod-account(-\d+)?$/

/** The account signs a message for each received public post. A signature with 4096 bits takes six times as long. */
const KEY_BITS = 2048

/** The accounts by open database. An account is stored here once it exists, and never changes. */
const podAccounts = new WeakMap<Knex, PodAccount>()

export function isPodAccountName(username: string): boolean {
  return RESERVED_NAME.test(username)
}

/** Returns the account of the pod. The first call makes it. */
export async function findOrMakePodAccount(
  services: Pick<Services, 'config' | 'db' | 'crypto' | 'secrets'>,
): Promise<PodAccount> {
  const account = podAccounts.get(services.db)
  if (account !== undefined) return account
  const { guid, address } = (await findPodAccount(services.db)) ?? (await makePodAccount(services))
  podAccounts.set(services.db, { guid, address })
  return { guid, address }
}

async function makePodAccount(
  services: Pick<Services, 'config' | 'db' | 'crypto' | 'secrets'>,
): Promise<PodAccountRow> {
  const { publicKey, privateKey } = await services.crypto.generateKeyPair(KEY_BITS)
  await insertPodAccount(services.db, {
    guid: newGuid(),
    address: await findFreeAddress(services),
    publicKey,
    sealedPrivateKey: services.secrets.encrypt(privateKey, 'pod account'),
  })
  const account = await findPodAccount(services.db)
  if (account === undefined) throw new Error('The account of the pod is not stored.')
  return account
}

async function findFreeAddress({ db, config }: Pick<Services, 'config' | 'db'>): Promise<string> {
  for (let number = 1; ; number += 1) {
    const address = `pod-account${number === 1 ? '' : `-${number}`}@${config.host}`
    if (!(await Person.isKnown(db, address))) return address
  }
}
