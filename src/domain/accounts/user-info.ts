import { randomBytes } from 'node:crypto'
import { Authorization } from '../../persistence/models/access-token.js'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
import { findActiveUser } from './authorizations.js'
import { determineSector, findClient, type RegisteredClient } from './clients.js'
import type { Viewer } from './viewers.js'

/** The `sub` claim for a client: the address, or a pairwise identifier that is shared by the clients of one sector. */
export async function findSubject(pod: Pick<Pod, 'db'>, address: string, client: RegisteredClient): Promise<string> {
  if (client.metadata.subject_type !== 'pairwise') return address
  const user = await findActiveUser(pod, address)
  if (user === undefined) throw new Error('An ID token was requested for an address without an active account.')
  return findOrCreatePairwiseSubject(pod, user.id, determineSector(client))
}

/** The user info of a client with the scope `openid`. */
export interface UserInfo {
  readonly subject: string
  readonly person: Person
  readonly email: string | null
}

export async function findUserInfo(pod: Pick<Pod, 'db'>, viewer: Viewer): Promise<UserInfo> {
  const [person, user, clientId] = await Promise.all([
    Person.query(pod.db).findById(viewer.personId).withGraphFetched('profile').throwIfNotFound(),
    User.query(pod.db).findById(viewer.userId).throwIfNotFound(),
    findClientId(pod, viewer),
  ])
  const client = clientId === undefined ? undefined : await findClient(pod, clientId)
  const subject = client === undefined ? person.address : await findSubject(pod, person.address, client)
  return { subject, person, email: user.email }
}

async function findClientId(pod: Pick<Pod, 'db'>, { authorizationId }: Viewer): Promise<string | undefined> {
  if (authorizationId === undefined) return undefined
  const authorization = await Authorization.query(pod.db).findById(authorizationId).withGraphFetched('client')
  return authorization?.client?.clientId
}

async function findOrCreatePairwiseSubject({ db }: Pick<Pod, 'db'>, userId: number, sector: string): Promise<string> {
  await db('pairwise_subjects')
    .insert({ userId, sector, subject: randomBytes(16).toString('hex') })
    .onConflict(['userId', 'sector'])
    .ignore()
  const row: { readonly subject: string } | undefined = await db('pairwise_subjects')
    .where({ userId, sector })
    .first('subject')
  if (row === undefined) throw new Error('A pairwise subject was inserted and not found.')
  return row.subject
}
