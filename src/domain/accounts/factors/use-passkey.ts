import { inTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import type { Pod } from '../../../pod/pod.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { type Credential, isClosingForGood, mayHaveAccess } from '../sign-in.js'
import { FACTOR_LIMITS } from './limits.js'
import { type ChallengeUse, makeChallenge, useChallenge } from './passkey-challenges.js'
import type { RelyingParty } from './relying-party.js'
import type { FactorPod } from './second-factor.js'
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
  pod: Pick<Pod, 'db' | 'now'>,
  party: RelyingParty,
  use: ChallengeUse,
  userId?: number,
): Promise<object> {
  const own =
    userId === undefined ? [] : await pod.db('passkeys').where({ userId }).select('credentialId', 'transports')
  return {
    rpId: party.id,
    challenge: await makeChallenge(pod, use),
    timeout: FACTOR_LIMITS.challengeSeconds * 1_000,
    userVerification: 'required',
    allowCredentials: own.map(({ credentialId: id, transports }) => ({ type: 'public-key', id, transports })),
  }
}

/** Checks the answer of a browser, of `userId` if given. Undefined for every fault: the reply must not tell which passkeys there are. */
export async function checkPasskey(
  pod: FactorPod,
  party: RelyingParty,
  text: string,
  use: ChallengeUse,
  userId?: number,
): Promise<PasskeyUser | undefined> {
  const assertion = readAssertion(text)
  const passkey: StoredPasskey | undefined =
    assertion &&
    (await pod
      .db('passkeys')
      .where({ credentialId: assertion.id, ...(userId !== undefined && { userId }) })
      .first())
  const user = passkey && (await User.query(pod.db).findById(passkey.userId).withGraphFetched('person'))
  if (!assertion || !passkey || !user?.person || !mayHaveAccess(user) || !isOwnHandle(assertion, user)) return undefined
  const isChallenge = (challenge: string) => useChallenge(pod.db, challenge, { ...use, at: pod.now() })
  const counter = await verifyAssertion(assertion, passkey, party, isChallenge)
  if (counter === undefined || !(await acceptCounter(pod, passkey, counter))) return undefined
  const { address } = user.person
  return {
    ...{ userId: user.id, address, isClosing: isClosingForGood(pod, user) },
    isValid: async () => (await pod.db('passkeys').where({ id: passkey.id }).first('id')) !== undefined,
  }
}

function isOwnHandle({ userHandle }: Assertion, { webauthnId }: User): boolean {
  return webauthnId?.equals(Buffer.from(userHandle, 'base64url')) ?? false
}

/** Notes the use. A counter that does not rise from above zero means a copied passkey: it is refused, with a mail. */
async function acceptCounter(pod: FactorPod, { id, userId }: StoredPasskey, counter: number): Promise<boolean> {
  return inTransaction(pod, async (transaction) => {
    const accepted = await transaction('passkeys')
      .where({ id })
      .where((query) => query.where('counter', 0).orWhere('counter', '<', counter))
      .update({ counter, lastUsedAt: pod.now() })
    if (accepted === 0) await enqueueAccountMail(pod, transaction, 'passkey_refused', userId)
    return accepted === 1
  })
}
