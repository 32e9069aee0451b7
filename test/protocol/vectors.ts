import { readFileSync } from 'node:fs'
import type { Json } from '../../src/protocol/entities/define-entity.js'
import type { ProtocolFault } from '../../src/protocol/errors.js'

/** The file of known answers that other software of the network gave; `format` 1. */
export interface Vectors {
  readonly format: 1
  readonly people: readonly VectorPerson[]
  readonly related: readonly RelatedVector[]
  readonly receive: readonly ReceiveVector[]
  readonly send: readonly SendVector[]
  readonly relay: readonly RelayVector[]
  readonly discovery: readonly DiscoveryVector[]
  readonly schema: readonly { readonly name: string; readonly valid: boolean; readonly instance: unknown }[]
  readonly types: { readonly [type: string]: readonly (readonly [text: string, result: Json])[] | string }
  readonly links: readonly { readonly text: string; readonly links: readonly (readonly string[])[] }[]
}

export interface VectorPerson {
  readonly id: string
  readonly guid: string
  readonly local: boolean
  readonly private_key: string
  readonly public_key: string
}

/** Something the receiver knows. */
export interface RelatedVector {
  readonly type: string
  readonly guid: string
  readonly author: string
  readonly local: boolean
  readonly public: boolean
  readonly parent?: { readonly author: string; readonly local: boolean; readonly public: boolean }
}

export interface EntityVector {
  readonly entity_type: string
  readonly entity_data: { readonly [name: string]: Json }
  readonly property_order?: readonly string[]
}

export interface ReceiveVector {
  readonly name: string
  readonly kind: 'receive_public' | 'receive_private' | 'parse_public'
  readonly recipient?: string
  readonly input: string
  readonly expect:
    | {
        readonly ok: true
        readonly sender: string
        readonly entity: EntityVector
        readonly unspecified?: readonly string[]
      }
    | { readonly ok: false; readonly error: ProtocolFault | readonly ProtocolFault[]; readonly retry: boolean }
}

export interface SendVector {
  readonly name: string
  readonly sender: string
  readonly entity: EntityVector
  readonly payload_xml: string
  readonly fields: readonly (readonly [name: string, text: string | null])[]
  readonly envelope_data: string
  readonly envelope_key_id: string
  readonly envelope_sig: string
  readonly envelope_xml: string
  readonly signed_text?: string
  readonly author_signature?: string
}

export interface RelayVector {
  readonly name: string
  readonly input: string
  readonly author: string
  readonly root_author: string
  readonly relayed_root: string
  readonly relayed_fields: readonly (readonly [name: string, text: string])[]
}

export interface DiscoveryVector {
  readonly name: string
  readonly id: string
  readonly webfinger_json: string
  readonly hcard_html: string
  readonly expect: { readonly ok: boolean; readonly error?: string; readonly [member: string]: Json | undefined }
}

const nothing: Vectors = {
  format: 1,
  people: [],
  related: [],
  receive: [],
  send: [],
  relay: [],
  discovery: [],
  schema: [],
  types: {},
  links: [],
}

/** Reads a file of this format, which may leave out whole sections. */
export function readVectors(file: string | URL): Vectors {
  const vectors: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (typeof vectors !== 'object' || vectors === null || !('format' in vectors) || vectors.format !== 1) {
    throw new Error('it is not of format 1')
  }
  const given = new Map<string, unknown>(Object.entries(vectors))
  for (const [section, none] of Object.entries(nothing)) {
    if (given.has(section) && Array.isArray(given.get(section)) !== Array.isArray(none)) {
      throw new Error(`the section ${section} is not what it should be`)
    }
  }
  return { ...nothing, ...(vectors as Partial<Vectors>) } // the file says that it has this format
}
