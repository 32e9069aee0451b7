import { deepEqual, throws } from 'node:assert/strict'
import {
  type Hcard,
  type PersonLinks,
  readHcard,
  readWebFinger,
} from '../../src/protocol/discovery/discovery-documents.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import { readPublicKey } from '../../src/protocol/signatures/rsa.js'
import type { DiscoveryVector } from './vectors.js'

export function checkDiscovery(vector: DiscoveryVector): void {
  const { ok, error, ...person } = vector.expect
  const discover = () => {
    const links = readWebFinger(vector.webfinger_json, vector.id)
    return { links, hcard: readHcard(vector.hcard_html) }
  }
  if (!ok) {
    throws(discover, (thrown) => thrown instanceof ProtocolError && thrown.fault === error)
    return
  }
  const { links, hcard } = discover()
  deepEqual(comparableResult(links, hcard), { ...person, public_key: keyBytes(String(person['public_key'])) })
}

function comparableResult({ hcardUrl, podUrl }: PersonLinks, hcard: Hcard) {
  return {
    guid: hcard.guid,
    url: podUrl,
    public_key: keyBytes(hcard.publicKey),
    full_name: hcard.fullName,
    first_name: hcard.firstName,
    last_name: hcard.lastName,
    image_url: hcard.imageUrl,
    image_url_medium: hcard.imageUrlMedium,
    image_url_small: hcard.imageUrlSmall,
    searchable: hcard.searchable,
    hcard_url: hcardUrl,
  }
}

/** The same key may be written in two forms. */
function keyBytes(pem: string): string | undefined {
  return readPublicKey(pem)?.export({ type: 'spki', format: 'der' }).toString('base64')
}
