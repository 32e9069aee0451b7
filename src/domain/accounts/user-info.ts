import { randomBytes } from 'node:crypto'
import { Authorization } from '../../persistence/models/access-token.js'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { findActiveUser } from './authorizations.js'
import { determineSector, findClient, type RegisteredClient } from './clients.js'
import type { Viewer } from './viewers.js'

/** The `sub` claim for a client: the address, or a pairwise identifier that is shared by the clients of one sector. */
export async function findSubject(
  services: Pick<Services, 'db'>,
  address: string,
  client: RegisteredClient,
): Promise<string> {
  if (client.metadata.subject_type !== 'pairwise') return address
  const user = await findActiveUser(services, address)
  if (user === undefined) throw new Error('An ID token was requested for an address without an active account.')
  return findOrCreatePairwiseSubject(services, user.id, determineSector(client))
}

/** The user info of a client with the scope `openid`. */
export interface UserInfo {
  readonly subject: string
  readonly person: Person
  readonly email: string | null
}

export async function getUserInfo(services: Pick<Services, 'db'>, viewer: Viewer): Promise<UserInfo> {
  const [person, user, clientId] = await Promise.all([
    Person.query(services.db).findById(viewer.personId).withGraphFetched('profile').throwIfNotFound(),
    User.query(services.db).findById(viewer.userId).throwIfNotFound(),
    findClientId(services, viewer),
  ])
  const client = clientId === undefined ? undefined : await findClient(services, clientId)
  const subject = client === undefined ? person.address : await findSubject(services, person.address, client)
  return { subject, person, email: user.email }
}

async function findClientId(services: Pick<Services, 'db'>, { authorizationId }: Viewer): Promise<string | undefined> {
  if (authorizationId === undefined) return undefined
  const authorization = await Authorization.query(services.db).findById(authorizationId).withGraphFetched('client')
  return authorization?.client?.clientId
}

async function findOrCreatePairwiseSubject(
  { db }: Pick<Services, 'db'>,
  userId: number,
  sector: string,
): Promise<string> {
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
