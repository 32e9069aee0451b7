import { ProtocolError, type ProtocolFault } from '../errors.js'
import { type Hcard, type PersonLinks, readHcard, readSubscribeTemplate, readWebFinger } from './discovery-documents.js'
import { PERSON_STREAM_LIMITS } from './limits.js'
import { type NodeInfo, readNodeInfo, readNodeInfoLink } from './node-info.js'
import { readPersonStream } from './person-stream.js'

/** The content of each type of document that other pods publish. */
export interface DocumentContents {
  readonly webFinger: PersonLinks
  /** URL with `{uri}` in the place of the address to follow. */
  readonly subscribeTemplate: string
  readonly hcard: Hcard
  readonly nodeInfoLink: string
  readonly nodeInfo: NodeInfo
  /** Guids of posts. */
  readonly personStream: readonly string[]
}

export type DocumentType = keyof DocumentContents

/** A document as it was received. */
export type ReceivedDocument =
  | { readonly type: 'webFinger'; readonly text: string; readonly address: string }
  | { readonly type: 'personStream'; readonly text: string; readonly personGuid: string }
  | { readonly type: Exclude<DocumentType, 'webFinger' | 'personStream'>; readonly text: string }

export type ReadDocument<Type extends DocumentType = DocumentType> =
  | { readonly state: 'read'; readonly content: DocumentContents[Type] }
  | { readonly state: 'rejected'; readonly fault: ProtocolFault; readonly reason: string }

/** Faults are part of the result, because errors lose their class between threads. */
export function readDocument(document: ReceivedDocument): ReadDocument {
  try {
    return { state: 'read', content: contentOf(document) }
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return { state: 'rejected', fault: error.fault, reason: error.message }
  }
}

function contentOf(document: ReceivedDocument): DocumentContents[DocumentType] {
  switch (document.type) {
    case 'webFinger':
      return readWebFinger(document.text, document.address)
    case 'subscribeTemplate':
      return readSubscribeTemplate(document.text)
    case 'hcard':
      return readHcard(document.text)
    case 'nodeInfoLink':
      return readNodeInfoLink(document.text)
    case 'nodeInfo':
      return readNodeInfo(document.text)
    case 'personStream':
      return readPersonStream(document.text, document.personGuid, PERSON_STREAM_LIMITS.posts)
  }
}
