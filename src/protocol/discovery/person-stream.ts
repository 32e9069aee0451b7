import { ProtocolError } from '../errors.js'
import { readMember } from '../json-member.js'
import { isGuid } from '../values.js'

/** The guids of this person's public posts in the stream of their pod, newest first. */
export function readPersonStream(json: string, personGuid: string, limit: number): readonly string[] {
  const items = parseJson(json)
  if (!Array.isArray(items)) throw new ProtocolError('NotFetchable', 'the stream is not a list')
  const guids = items.flatMap((item: unknown) => {
    const guid = readMember(item, 'guid')
    const isOwn = readMember(readMember(item, 'author'), 'guid') === personGuid
    return isOwn && readMember(item, 'public') === true && typeof guid === 'string' && isGuid(guid) ? [guid] : []
  })
  return [...new Set(guids)].slice(0, limit)
}

function parseJson(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new ProtocolError('NotFetchable', 'the stream is not JSON', { cause })
  }
}
