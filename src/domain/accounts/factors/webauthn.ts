import type { RelyingParty } from './relying-party.js'

/** Whether the challenge that a response answers is valid; the call uses it up. */
type CheckChallenge = (challenge: string) => Promise<boolean>

/** A new credential, as it is stored. */
export interface NewCredential {
  readonly credentialId: string
  readonly publicKey: Buffer
  readonly counter: number
  readonly transports: readonly string[]
  readonly backedUp: boolean
}

export interface StoredCredential {
  readonly credentialId: string
  readonly publicKey: Buffer
  readonly transports: readonly string[]
}

/** The response of a browser after the use of a credential. */
export interface Assertion {
  readonly id: string
  /** The user id that the authenticator has stored, in base64url. */
  readonly userHandle: string
  readonly response: object
}

/** Loaded with the first passkey: the library takes a tenth of a second and 15 MB. */
const library = () => import('@simplewebauthn/server')

/** Reads what a browser sends after it has made a credential. Undefined: it is not valid. */
export async function readCredential(
  text: string,
  { id, origin }: RelyingParty,
  isChallenge: CheckChallenge,
): Promise<NewCredential | undefined> {
  const response = parseObject(text)
  if (response === undefined) return undefined
  const { verifyRegistrationResponse } = await library()
  return verifyOrUndefined(isChallenge, async (expectedChallenge) => {
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: response as unknown as Parameters<typeof verifyRegistrationResponse>[0]['response'], // checked by the library
      expectedChallenge,
      expectedOrigin: origin,
      expectedRPID: id,
      requireUserVerification: true,
    })
    if (!verified || registrationInfo === undefined) return undefined
    const { credential, credentialBackedUp: backedUp } = registrationInfo
    return {
      credentialId: credential.id,
      publicKey: Buffer.from(credential.publicKey),
      counter: credential.counter,
      transports: (credential.transports ?? []).filter((transport) => /^[a-z-]{1,32}$/.test(transport)).slice(0, 10),
      backedUp,
    }
  })
}

/** Reads which credential a browser has used. */
export function readAssertion(text: string): Assertion | undefined {
  const response = parseObject(text)
  const { id, response: parts } = response ?? {}
  const userHandle = typeof parts === 'object' && parts !== null ? Reflect.get(parts, 'userHandle') : undefined
  if (response === undefined || typeof id !== 'string' || typeof userHandle !== 'string') return undefined
  return { id, userHandle, response }
}

/** Checks the signature of a credential. Returns its new counter; undefined: it is not valid. The caller compares the counter. */
export async function verifyAssertion(
  { response }: Assertion,
  { credentialId, publicKey, transports }: StoredCredential,
  { id, origin }: RelyingParty,
  isChallenge: CheckChallenge,
): Promise<number | undefined> {
  const { verifyAuthenticationResponse } = await library()
  return verifyOrUndefined(isChallenge, async (expectedChallenge) => {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: response as Parameters<typeof verifyAuthenticationResponse>[0]['response'], // checked by the library
      expectedChallenge,
      expectedOrigin: origin,
      expectedRPID: id,
      requireUserVerification: true,
      credential: {
        id: credentialId,
        publicKey: new Uint8Array(publicKey),
        counter: 0,
        transports: transports as NonNullable<
          Parameters<typeof verifyAuthenticationResponse>[0]['credential']['transports']
        >,
      },
    })
    return verified ? authenticationInfo.newCounter : undefined
  })
}

/** The library throws for each way in which a response can be wrong. A failure of the check of the challenge is thrown on. */
async function verifyOrUndefined<Result>(
  isChallenge: CheckChallenge,
  verify: (isChallenge: CheckChallenge) => Promise<Result>,
): Promise<Result | undefined> {
  const failures: unknown[] = []
  const check: CheckChallenge = (challenge) =>
    isChallenge(challenge).catch((error) => {
      failures.push(error)
      throw error
    })
  try {
    return await verify(check)
  } catch {
    if (failures.length > 0) throw failures[0]
    return undefined
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined
  } catch {
    return undefined
  }
}
