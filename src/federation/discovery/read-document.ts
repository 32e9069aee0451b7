import type {
  DocumentContents,
  DocumentType,
  ReadDocument,
  ReceivedDocument,
} from '../../protocol/discovery/documents.js'
import { ProtocolError } from '../../protocol/errors.js'
import type { Services } from '../../services/services.js'

/** Reads a document of another pod in a thread. Throws a `ProtocolError` with the fault of a document that is not usable. */
export async function readRemoteDocument<Type extends DocumentType>(
  { crypto }: Pick<Services, 'crypto'>,
  document: ReceivedDocument & { readonly type: Type },
): Promise<DocumentContents[Type]> {
  const read = (await crypto.readDocument(document)) as ReadDocument<Type> // the thread returns the type of the document it gets
  if (read.state === 'rejected') throw new ProtocolError(read.fault, read.reason)
  return read.content
}
