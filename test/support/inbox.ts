import { createUser } from '../../src/domain/accounts.js'
import type { Message } from '../../src/federation/batch.js'
import { receiveBatch } from '../../src/federation/receive-batch.js'
import { Person } from '../../src/persistence/models/person.js'
import { User } from '../../src/persistence/models/user.js'
import type { Pod } from '../../src/pod.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import { envelopeOf, type FakePerson, type FakePods } from './fake-pod.js'
import { addStranger } from './network.js'
import { coatFor } from './receiving-pod.js'

/** Somebody on another pod, with the row that stands for them here. */
export type Stranger = FakePerson & { readonly id: number }

/** Somebody who lives here. */
export interface LocalPerson {
  readonly userId: number
  readonly id: number
  readonly guid: string
  readonly address: string
  readonly publicKey: string
}

export async function addLocal(pod: Pod, username: string): Promise<LocalPerson> {
  const { guid, address } = await createUser(pod, { username, password: `the password of ${username}` })
  const { id: userId, personId: id } = await User.byUsername(pod.db, username).throwIfNotFound()
  const { publicKey } = await Person.query(pod.db).findById(id).throwIfNotFound()
  return { userId, id, guid, address, publicKey }
}

export async function meetStranger(pod: Pod, others: FakePods, address: string): Promise<Stranger> {
  const person = others.person(address)
  const { id } = await addStranger(pod, address, { guid: person.guid, publicKey: person.publicKey })
  return { ...person, id }
}

/** As it is sent to everybody. */
export function open(signer: FakePerson, entity: Entity, acceptedAt = new Date()): Message {
  return { envelope: envelopeOf(signer, entity), acceptedAt }
}

/** As it is sent to one person of this pod. */
export function sealed(signer: FakePerson, to: LocalPerson, entity: Entity, acceptedAt = new Date()): Message {
  return { envelope: coatFor(to.publicKey, envelopeOf(signer, entity)), recipientGuid: to.guid, acceptedAt }
}

export const nothing = { waiting: [], wrong: [], over: 0 }

/** Takes them in as one batch; tells what became of those that were not stored. */
export async function receive(pod: Pod, ...messages: readonly Message[]) {
  const { waiting, wrong, over } = await receiveBatch(pod, messages)
  return { waiting: waiting.map(({ waitsFor }) => waitsFor), wrong: wrong.map(({ fault }) => fault), over: over.length }
}
