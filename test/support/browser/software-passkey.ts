import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** Fields of a credential that an authenticator or an attacker changes. */
interface CredentialChanges {
  readonly origin?: string
  readonly rpId?: string
  /** False: the authenticator has not verified the person. */
  readonly verified?: boolean
  readonly counter?: number
  readonly userHandle?: string
  readonly challenge?: string
}

/** An authenticator in the test. It can also return credentials that no browser would send. */
export interface SoftwarePasskey {
  readonly id: string
  /** The new credential, for the options of a registration page. */
  make(options: PageOptions, changes?: CredentialChanges): string
  /** The assertion, for the options of a sign-in page. */
  use(options: PageOptions, changes?: CredentialChanges): string
}

/** Options in the attribute `data-options`. */
export interface PageOptions {
  readonly challenge: string
  readonly user?: { readonly id: string }
}

const [PRESENT, VERIFIED, HAS_CREDENTIAL] = [0x01, 0x04, 0x40]

export function softwarePasskey(origin: string): SoftwarePasskey {
  const rpId = new URL(origin).hostname
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const id = randomBytes(16)
  let userHandle = ''
  let counter = 0

  const authenticatorData = (flags: number, changes: CredentialChanges) => {
    const head = Buffer.alloc(5)
    head.writeUInt8(flags | PRESENT | (changes.verified === false ? 0 : VERIFIED))
    head.writeUInt32BE(changes.counter ?? counter, 1)
    return Buffer.concat([sha256(changes.rpId ?? rpId), head])
  }
  const clientData = (type: string, { challenge }: PageOptions, changes: CredentialChanges) =>
    Buffer.from(
      JSON.stringify({
        type,
        challenge: changes.challenge ?? challenge,
        origin: changes.origin ?? origin,
        crossOrigin: false,
      }),
    )
  const toJson = (response: object) =>
    JSON.stringify({
      id: text(id),
      rawId: text(id),
      type: 'public-key',
      response,
      clientExtensionResults: {},
    })

  return {
    id: text(id),
    make(options, changes = {}) {
      userHandle = options.user?.id ?? ''
      const credential = Buffer.concat([Buffer.alloc(16), Buffer.from([0, id.length]), id, coseKey(publicKey)])
      const data = Buffer.concat([authenticatorData(HAS_CREDENTIAL, changes), credential])
      const attestation = Buffer.concat([
        ...[Buffer.from([0xa3]), cborText('fmt'), cborText('none'), cborText('attStmt'), Buffer.from([0xa0])],
        ...[cborText('authData'), cborBytes(data)],
      ])
      const clientDataJSON = text(clientData('webauthn.create', options, changes))
      return toJson({ clientDataJSON, attestationObject: text(attestation), transports: ['internal'] })
    },
    use(options, changes = {}) {
      counter += 1
      const data = authenticatorData(0, changes)
      const client = clientData('webauthn.get', options, changes)
      const signature = sign('sha256', Buffer.concat([data, sha256(client)]), privateKey)
      return toJson({
        clientDataJSON: text(client),
        authenticatorData: text(data),
        signature: text(signature),
        userHandle: changes.userHandle ?? userHandle,
      })
    },
  }
}

function text(bytes: Buffer): string {
  return bytes.toString('base64url')
}

function sha256(data: string | Buffer): Buffer {
  return createHash('sha256').update(data).digest()
}

/** COSE (RFC 9053): an elliptic curve key for ES256. */
function coseKey(publicKey: KeyObject): Buffer {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  return Buffer.concat([
    Buffer.from([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21]),
    ...[cborBytes(Buffer.from(x, 'base64url')), Buffer.from([0x22]), cborBytes(Buffer.from(y, 'base64url'))],
  ])
}

function cborText(value: string): Buffer {
  return Buffer.concat([Buffer.from([0x60 + value.length]), Buffer.from(value)])
}

/** A CBOR byte string of up to 255 bytes. */
function cborBytes(value: Buffer): Buffer {
  return Buffer.concat([Buffer.from([0x58, value.length]), value])
}
