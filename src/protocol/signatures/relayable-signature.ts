import type { KeyObject } from 'node:crypto'
import { decodeBase64 } from '../base64.js'
import { findProperty } from '../entities/define-entity.js'
import { listElements } from '../entities/relayable-elements.js'
import { type Elements, type Relayable, relayables } from '../entities/relayables.js'
import { signRsaSha256, verifyRsaSha256 } from './rsa.js'

/** The signed text, in the author's order of elements: other pods may send unknown elements. */
export function signedText(elements: Elements): string {
  return elements.map(([, text]) => text).join(';')
}

export function signRelayable(relayable: Relayable, key: KeyObject): string {
  return signRsaSha256(Buffer.from(signedText(listElements(relayable))), key).toString('base64')
}

/**
 * Whether the author's signature is valid, over the received texts or over their canonical form. Other pods may sign timestamps
 * and booleans in canonical form and send another. The received texts are tried first, because they are relayed.
 */
export function verifyRelayable(relayable: Relayable, key: KeyObject): boolean {
  const signature = decodeBase64(relayable.author_signature ?? '')
  if (signature === undefined) return false

  const receivedText = signedText(listElements(relayable))
  if (verifyRsaSha256(Buffer.from(receivedText), key, signature)) return true
  const canonical = signedText(canonicalElements(relayable))
  return canonical !== receivedText && verifyRsaSha256(Buffer.from(canonical), key, signature)
}

function canonicalElements(relayable: Relayable): Elements {
  const definition = relayables[relayable.type]
  return listElements(relayable).map(([name, text]) => [
    name,
    findProperty(definition, name)?.canonical?.(text) ?? text,
  ])
}
