import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import type { Relayable } from '../../src/protocol/entities/relayables.js'
import { writeEncryptedEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { signMagicEnvelope } from '../../src/protocol/envelopes/magic-envelope.js'
import type { KnownKeys } from '../../src/protocol/envelopes/verify-envelope.js'
import { signRelayable } from '../../src/protocol/signatures/relayable-signature.js'

/** Messages of another pod, about as long as those of real people. */
export interface Corpus {
  readonly statusMessages: readonly string[]
  /** Comments that are relayed by the author of the post, with two signatures each. */
  readonly comments: readonly string[]
  readonly privateMessages: readonly string[]
  /** Address of the author of the posts. */
  readonly poster: string
  readonly keys: KnownKeys
  readonly recipientKey: KeyObject
}

const poster = 'remy@r.example'
const commenter = 'quin@q.example'

export function makeCorpus(bits: number, size: number): Corpus {
  const [posting, commenting, receiving] = [1, 2, 3].map(() => generateKeyPairSync('rsa', { modulusLength: bits }))
  if (posting === undefined || commenting === undefined || receiving === undefined)
    throw new Error('A key pair is missing.')
  const times = Array.from({ length: size })
  const statusMessages = times.map(() => signMagicEnvelope(writeEntity(statusMessage()), poster, posting.privateKey))
  const comments = times.map(() => {
    const unsigned = comment()
    const signed = { ...unsigned, author_signature: signRelayable(unsigned, commenting.privateKey) }
    return signMagicEnvelope(writeEntity(signed), poster, posting.privateKey)
  })
  return {
    statusMessages,
    comments,
    privateMessages: statusMessages.map((envelope) => writeEncryptedEnvelope(envelope, receiving.publicKey)),
    poster,
    keys: new Map([
      [poster, posting.publicKey],
      [commenter, commenting.publicKey],
    ]),
    recipientKey: receiving.privateKey,
  }
}

const sentence = 'The quick brown fox — «schnell» — jumps over the lazy dog & 狐 too. '

function statusMessage(): Entity {
  return {
    type: 'status_message',
    author: poster,
    guid: newGuid(),
    created_at: new Date(),
    public: true,
    text: sentence.repeat(6),
    photos: [],
  }
}

function comment(): Relayable {
  return {
    type: 'comment',
    author: commenter,
    guid: newGuid(),
    parent_guid: newGuid(),
    text: sentence.repeat(2),
    created_at: new Date(),
  }
}

function newGuid(): string {
  return randomBytes(16).toString('hex')
}
