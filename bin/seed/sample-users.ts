import { type Account, createUser } from '../../src/domain/accounts/accounts.js'
import { SCOPES } from '../../src/domain/accounts/scopes.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { Aspect } from '../../src/persistence/models/aspect.js'
import { User } from '../../src/persistence/models/user.js'
import type { Services } from '../../src/services/services.js'

/** A new sample user with the first of their aspects. */
export interface SampleUser extends Viewer {
  readonly username: string
  readonly guid: string
  readonly address: string
  readonly aspectId: number
  /** An access token with all scopes. */
  readonly accessToken: string
}

const A_YEAR_OF_SECONDS = 365 * 86_400

export async function createSampleUser(services: Services, username: string, password: string): Promise<SampleUser> {
  const { guid, address }: Account = await createUser(services, { username, password })
  const { id: userId, personId } = await User.byUsername(services.db, username).throwIfNotFound()
  const { id: aspectId } = await Aspect.query(services.db)
    .where({ userId, name: 'Friends' })
    .first()
    .throwIfNotFound({ message: 'a new account has the aspect Friends' })
  const { accessToken } = await mintToken(services, username, { scopes: SCOPES, lifetime: A_YEAR_OF_SECONDS })
  return { username, guid, address, aspectId, accessToken, userId, personId, scopes: new Set(SCOPES) }
}
