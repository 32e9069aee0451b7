import { sign } from 'node:crypto'
import type { FakePerson } from '../support/federation/fake-pods.js'

/** Overrides of envelope fields; omitted fields have valid values. */
interface Forgery {
  readonly algorithm?: string
  readonly encoding?: string
  readonly type?: string
  readonly keyId?: string
  readonly signature?: string
  /** Elements in front of those that count, behind them, and another namespace for all of them. */
  readonly before?: string
  readonly after?: string
  readonly namespace?: string
}

const base64url = (bytes: string | Buffer) => Buffer.from(bytes).toString('base64url')

/** An envelope with its parts as an attacker would have them, rightly signed over just these parts. */
export function forgedEnvelope(
  signer: Pick<FakePerson, 'address' | 'privateKey'>,
  payload: string | Buffer,
  forgery: Forgery = {},
): string {
  const { algorithm = 'RSA-SHA256', encoding = 'base64url', type = 'application/xml' } = forgery
  const data = padded(payload)
  const signed = [data, ...[type, encoding, algorithm].map(padded)].join('.')
  const signature = forgery.signature ?? padded(sign('sha256', Buffer.from(signed), signer.privateKey))
  const namespace = forgery.namespace ?? 'http://salmon-protocol.org/ns/magic-env'
  return [
    `<me:env xmlns:me="${namespace}">`,
    forgery.before ?? '',
    `<me:data type="${type}">${data}</me:data>`,
    `<me:encoding>${encoding}</me:encoding><me:alg>${algorithm}</me:alg>`,
    `<me:sig key_id="${base64url(forgery.keyId ?? signer.address)}">${signature}</me:sig>`,
    forgery.after ?? '',
    '</me:env>',
  ].join('')
}

/** The data of an envelope as it stands there. */
export function dataElement(payload: string): string {
  return `<me:data type="application/xml">${padded(payload)}</me:data>`
}

function padded(bytes: string | Buffer): string {
  const text = base64url(bytes)
  return text + '='.repeat((4 - (text.length % 4)) % 4)
}
