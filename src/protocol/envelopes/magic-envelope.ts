import type { KeyObject } from 'node:crypto'
import { isAddress, parseAddress } from '../address.js'
import { decodeBase64url, encodeBase64url } from '../base64.js'
import { ProtocolError, type ProtocolFault } from '../errors.js'
import { signRsaSha256, verifyRsaSha256 } from '../signatures/rsa.js'
import { readXml } from '../xml/xml.js'

/** A magic envelope that is not verified yet. */
export interface MagicEnvelope {
  /** The address as written in the envelope; with capitals it matches no author. */
  readonly sender: string
  /** The XML of one entity. */
  readonly payload: Buffer
  readonly signature: Buffer
}

const namespace = 'http://salmon-protocol.org/ns/magic-env'
const dataType = 'application/xml'
const encoding = 'base64url'
const algorithm = 'RSA-SHA256'
const signedSuffix = ['', dataType, encoding, algorithm].map((part) => encodeBase64url(Buffer.from(part))).join('.')

/** Reads an envelope without verifying it. Faults are checked in the order of FEDERATION.md, "Magic envelope". */
export function readMagicEnvelope(source: string | Uint8Array): MagicEnvelope {
  const { data, keyId, signature } = readUsualForm(source) ?? readAnyForm(source)
  const sender = decode(keyId, 'the key_id').toString()
  requireThat(isAddress(sender.toLowerCase()), 'InvalidEnvelope', 'the key_id is not an address')
  return { sender, payload: decode(data, 'the data'), signature: decode(signature, 'the signature') }
}

/** Throws `InvalidSignature` unless the owner of the key has signed this payload. */
export function verifyMagicEnvelope(envelope: MagicEnvelope, key: KeyObject): void {
  const isValid = verifyRsaSha256(signedBytes(encodeBase64url(envelope.payload)), key, envelope.signature)
  requireThat(isValid, 'InvalidSignature', `the signature is not that of ${envelope.sender}`)
}

/** Signs the payload and writes the envelope in the form that all pods read. */
export function signMagicEnvelope(payload: string, sender: string, key: KeyObject): string {
  const data = encodeBase64url(Buffer.from(payload))
  const signature = encodeBase64url(signRsaSha256(signedBytes(data), key))
  return `<?xml version="1.0" encoding="UTF-8"?>
<me:env xmlns:me="${namespace}">
  <me:data type="${dataType}">${data}</me:data>
  <me:encoding>${encoding}</me:encoding>
  <me:alg>${algorithm}</me:alg>
  <me:sig key_id="${encodeBase64url(Buffer.from(sender))}">${signature}</me:sig>
</me:env>
`
}

/**
 * The claimed sender and author of an envelope, found without parsing it. Used to load the keys for verification; not trusted.
 */
export function peekEnvelope(source: string): {
  readonly sender: string | undefined
  readonly author: string | undefined
} {
  const keyId = keyIdIn(source)
  // The author is the first element of nearly all payloads: decoding the beginning is usually enough.
  const author = authorIn(source, dataBeginning) ?? authorIn(source, longData)
  return {
    sender: parseAddress(Buffer.from(keyId ?? '', 'base64url').toString()),
    author: parseAddress(author ?? ''),
  }
}

/** The name of the entity in an envelope, found without parsing it; not trusted. */
export function peekEntityName(source: string): string | undefined {
  const [, data] = dataBeginning.exec(source) ?? []
  return data && /^\s*(?:<\?xml[^<>]*>\s*)?<(\w{1,64})[\s/>]/.exec(Buffer.from(data, 'base64url').toString())?.[1]
}

const keyIdAttribute = /\skey_id\s*=\s*["']([^"'<]{1,2048})["']/y
const dataBeginning = dataPattern(256)
const longData = dataPattern(8_192)

/** `indexOf` first: much faster than matching the pattern at each position of a long text. */
function keyIdIn(source: string): string | undefined {
  for (let at = source.indexOf('key_id', 1); at !== -1; at = source.indexOf('key_id', at + 1)) {
    keyIdAttribute.lastIndex = at - 1
    const [, keyId] = keyIdAttribute.exec(source) ?? []
    if (keyId !== undefined) return keyId
  }
  return undefined
}

/** Begins at a `<` and never matches across one; otherwise a text of many `<` would take quadratic time. */
function dataPattern(maxCharacters: number): RegExp {
  return new RegExp(`<(?:[^<>\\s:/]{1,64}:)?data\\s[^<>]{0,1024}>([^<]{1,${maxCharacters}})`)
}

function authorIn(source: string, pattern: RegExp): string | undefined {
  const [, data] = pattern.exec(source) ?? []
  return data && /<author>([^<&]{1,255})<\/author>/.exec(Buffer.from(data, 'base64url').toString())?.[1]
}

/** The three encoded texts of an envelope. */
interface EncodedParts {
  readonly data: string
  readonly keyId: string
  readonly signature: string
}

function readAnyForm(source: string | Uint8Array): EncodedParts {
  const root = readXml(source, 'InvalidEnvelope')
  requireThat(
    root.name === 'env' && root.namespace === namespace,
    'InvalidEnvelope',
    'the root is not an env of this protocol',
  )
  const child = (name: string) => root.children.find((found) => found.name === name && found.namespace === namespace)

  const data = child('data')
  const sig = child('sig')
  if (data === undefined || data.text === '') throw new ProtocolError('InvalidEnvelope', 'there is no data')
  if (sig === undefined || sig.text === '') throw new ProtocolError('InvalidEnvelope', 'there is no signature')
  requireThat(data.attributes.get('type') === dataType, 'InvalidDataType', `the data is not of type ${dataType}`)
  requireThat(child('encoding')?.text === encoding, 'InvalidEncoding', `the encoding is not ${encoding}`)
  // Only this algorithm: an envelope must not choose how it is verified.
  requireThat(child('alg')?.text === algorithm, 'InvalidAlgorithm', `the algorithm is not ${algorithm}`)
  return { data: data.text, keyId: sig.attributes.get('key_id') ?? '', signature: sig.text }
}

const base64url = '([A-Za-z0-9_=-]+)'
const usualForm = new RegExp(
  [
    '^(?:<\\?xml version="1\\.0" encoding="UTF-8"\\?>)?',
    `<me:env xmlns:me="${namespace.replaceAll('.', '\\.')}">`,
    `<me:data type="${dataType}">${base64url}</me:data>`,
    `<me:encoding>${encoding}</me:encoding>`,
    `<me:alg>${algorithm}</me:alg>`,
    `<me:sig key_id="${base64url}">${base64url}</me:sig>`,
    '</me:env>',
    '$',
  ].join('[ \\t\\r\\n]*'),
)
const maxUsualCharacters = 64 * 1024

/**
 * Nearly all pods write one form in which only the base64 texts vary. Matching it takes a tenth of the time of parsing. Returns what
 * `readAnyForm` would return, or `undefined`.
 */
function readUsualForm(source: string | Uint8Array): EncodedParts | undefined {
  if (typeof source !== 'string' || source.length > maxUsualCharacters) return undefined
  const [, data, keyId, signature] = usualForm.exec(source) ?? []
  if (data === undefined || keyId === undefined || signature === undefined) return undefined
  return { data, keyId, signature }
}

function decode(text: string, part: string): Buffer {
  const bytes = decodeBase64url(text)
  if (bytes === undefined) throw new ProtocolError('InvalidEnvelope', `${part} is not base64url`)
  return bytes
}

/** The signed bytes: the four parts in padded base64url, independent of how they were written. */
function signedBytes(data: string): Buffer {
  return Buffer.from(data + signedSuffix, 'latin1')
}

function requireThat(condition: boolean, fault: ProtocolFault, message: string): void {
  if (!condition) throw new ProtocolError(fault, message)
}
