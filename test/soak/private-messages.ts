import { newGuid } from '../../src/domain/new-guid.js'
import type { ConversationEntity, MessageEntity } from '../../src/protocol/entities/conversations.js'
import type { StatusMessageEntity } from '../../src/protocol/entities/posts.js'
import { writeEncryptedEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { readPublicKey } from '../../src/protocol/signatures/rsa.js'
import { envelopeOf } from '../support/federation/envelopes.js'
import type { FakePerson } from '../support/federation/fake-pods.js'
import type { UserWithToken } from './mixed-load-pod.js'

/** An encrypted message for one person. */
export interface EncryptedEnvelope {
  readonly path: string
  readonly body: string
}

/** Private messages of friends to single local users. */
export interface PrivateMessages {
  readonly encryptedEnvelopes: readonly EncryptedEnvelope[]
  readonly posts: readonly StatusMessageEntity[]
  readonly conversations: readonly OpenConversation[]
  readonly messages: readonly MessageEntity[]
}

export interface OpenConversation {
  readonly guid: string
  readonly friend: FakePerson
  readonly localUser: UserWithToken
}

/** Makes `count` private posts and conversations, and one more message in each open conversation. */
export function makePrivateMessages(
  friends: readonly FakePerson[],
  localUsers: readonly UserWithToken[],
  open: readonly OpenConversation[],
  count: number,
): PrivateMessages {
  const pairs = Array.from({ length: count }, (_, index) => pairOf(friends, localUsers, index))
  const posts: StatusMessageEntity[] = []
  const messages: MessageEntity[] = []
  const conversations: OpenConversation[] = []
  const encryptedEnvelopes: EncryptedEnvelope[] = []
  for (const { friend, localUser } of pairs) {
    const post = privatePostBy(friend)
    posts.push(post)
    encryptedEnvelopes.push(encryptEnvelopeFor(localUser, envelopeOf(friend, post)))
    const conversation = conversationOf(friend, localUser)
    conversations.push({ guid: conversation.guid, friend, localUser })
    messages.push(...conversation.messages)
    encryptedEnvelopes.push(encryptEnvelopeFor(localUser, envelopeOf(friend, conversation)))
  }
  for (const { guid, friend, localUser } of open) {
    const message = messageBy(friend, guid)
    messages.push(message)
    encryptedEnvelopes.push(encryptEnvelopeFor(localUser, envelopeOf(friend, message)))
  }
  return { encryptedEnvelopes, posts, conversations, messages }
}

function pairOf(friends: readonly FakePerson[], localUsers: readonly UserWithToken[], index: number) {
  const friend = friends[index % friends.length]
  const localUser = localUsers[index % localUsers.length]
  if (friend === undefined || localUser === undefined)
    throw new Error('A conversation needs a friend and a local user.')
  return { friend, localUser }
}

function encryptEnvelopeFor({ guid, publicKey }: UserWithToken, envelope: string): EncryptedEnvelope {
  const key = readPublicKey(publicKey)
  if (key === undefined) throw new Error('Every local user has a key.')
  return { path: `/receive/users/${guid}`, body: writeEncryptedEnvelope(envelope, key) }
}

const createdAt = new Date('2025-05-06T07:08:09Z')

function privatePostBy({ address: author }: FakePerson): StatusMessageEntity {
  const rest = { created_at: createdAt, public: false, text: 'Between us', photos: [] }
  return { type: 'status_message', author, guid: newGuid(), ...rest }
}

function messageBy({ address: author }: FakePerson, conversationGuid: string): MessageEntity {
  const rest = { text: 'Hello', created_at: createdAt, edited_at: undefined, conversation_guid: conversationGuid }
  return { type: 'message', author, guid: newGuid(), ...rest }
}

function conversationOf(friend: FakePerson, { address }: UserWithToken): ConversationEntity {
  const guid = newGuid()
  const participants = [friend.address, address]
  const rest = { subject: 'Tea', created_at: createdAt, participants, messages: [messageBy(friend, guid)] }
  return { type: 'conversation', author: friend.address, guid, ...rest }
}
