import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { type Credential, isClosingForGood, mayHaveAccess } from '../sign-in.js'
import { FACTOR_LIMITS } from './limits.js'
import { type ChallengeUse, makeChallenge, useChallenge } from './passkey-challenges.js'
import type { RelyingParty } from './relying-party.js'
import type { FactorDependencies } from './second-factor.js'
import { type Assertion, readAssertion, type StoredCredential, verifyAssertion } from './webauthn.js'

/** The person whose passkey has answered a challenge. It is valid until it is removed. */
export interface PasskeyUser extends Credential {
  readonly userId: number
  readonly isClosing: boolean
}

interface StoredPasskey extends StoredCredential {
  readonly id: number
  readonly userId: number
  readonly counter: string
}

/** The options with which a browser uses a passkey. Without `userId` the person chooses one of those that the browser knows. */
export async function beginPasskeyUse(
  services: Pick<Services, 'db' | 'now'>,
  party: RelyingParty,
  use: ChallengeUse,
  userId?: number,
): Promise<object> {
  const ownPasskeys =
    userId === undefined ? [] : await services.db('passkeys').where({ userId }).select('credentialId', 'transports')
  return {
    rpId: party.id,
    challenge: await makeChallenge(services, use),
    timeout: FACTOR_LIMITS.challengeSeconds * 1_000,
    userVerification: 'required',
    allowCredentials: ownPasskeys.map(({ credentialId: id, transports }) => ({ type: 'public-key', id, transports })),
  }
}

export interface PasskeyAnswer {
  /** The JSON text that the browser has sent. */
  readonly text: string
  readonly use: ChallengeUse
  /** The only user whose passkeys are accepted; undefined: any user. */
  readonly userId?: number
}

/** Checks the answer of a browser. Undefined for every fault: the response must not reveal which passkeys exist. */
export async function checkPasskey(
  services: FactorDependencies,
  party: RelyingParty,
  { text, use, userId }: PasskeyAnswer,
): Promise<PasskeyUser | undefined> {
  const assertion = readAssertion(text)
  const passkey: StoredPasskey | undefined =
    assertion &&
    (await services
      .db('passkeys')
      .where({ credentialId: assertion.id, ...(userId !== undefined && { userId }) })
      .first())
  const user = passkey && (await User.query(services.db).findById(passkey.userId).withGraphFetched('person'))
  if (!assertion || !passkey || !user?.person || !mayHaveAccess(user) || !isOwnHandle(assertion, user)) return undefined
  const isChallenge = (challenge: string) => useChallenge(services.db, challenge, { ...use, at: services.now() })
  const counter = await verifyAssertion(assertion, passkey, party, isChallenge)
  if (counter === undefined || !(await acceptCounter(services, passkey, counter))) return undefined
  const { address } = user.person
  return {
    userId: user.id,
    address,
    isClosing: isClosingForGood(services, user),
    isValid: async () => (await services.db('passkeys').where({ id: passkey.id }).first('id')) !== undefined,
  }
}

function isOwnHandle({ userHandle }: Assertion, { webauthnId }: User): boolean {
  return webauthnId?.equals(Buffer.from(userHandle, 'base64url')) ?? false
}

/** Records the use. A counter that does not rise from above zero means a copied passkey: it is refused, with a mail. */
async function acceptCounter(
  services: FactorDependencies,
  { id, userId }: StoredPasskey,
  counter: number,
): Promise<boolean> {
  return inRequestTransaction(services, async (transaction) => {
    const rowCount = await transaction('passkeys')
      .where({ id })
      .where((query) => query.where('counter', 0).orWhere('counter', '<', counter))
      .update({ counter, lastUsedAt: services.now() })
    if (rowCount === 0) await enqueueAccountMail(services, transaction, 'passkey_refused', userId)
    return rowCount === 1
  })
}
