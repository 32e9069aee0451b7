import { newGuid } from '../../../src/domain/new-guid.js'
import type { AccountMigrationEntity, ProfileEntity } from '../../../src/protocol/entities/people.js'
import type { PhotoEntity, ReshareEntity, StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import type {
  CommentEntity,
  LikeEntity,
  ParticipationEntity,
  PollParticipationEntity,
} from '../../../src/protocol/entities/relayables.js'
import { signMigration } from '../../../src/protocol/signatures/migration-signature.js'
import { signedBy } from './envelopes.js'
import type { FakePerson } from './fake-pods.js'

interface HasGuid {
  readonly guid: string
}

/** A profile with the given properties. */
export function profileOf(
  { address }: Pick<FakePerson, 'address'>,
  fields: Partial<ProfileEntity> = {},
): ProfileEntity {
  return {
    type: 'profile',
    author: address,
    edited_at: undefined,
    full_name: undefined,
    first_name: undefined,
    last_name: undefined,
    image_url: undefined,
    image_url_medium: undefined,
    image_url_small: undefined,
    bio: undefined,
    birthday: undefined,
    gender: undefined,
    location: undefined,
    tag_string: undefined,
    searchable: true,
    public: true,
    nsfw: false,
    ...fields,
  }
}

type MovingParty = Pick<FakePerson, 'address' | 'privateKey'>

/** The migration as the old identity sends it, or the new one. */
export function migrationOf(from: MovingParty, to: MovingParty, sender: MovingParty = from): AccountMigrationEntity {
  const witness = sender.address === from.address ? to : from
  return {
    type: 'account_migration',
    author: sender.address,
    profile: profileOf(to, { first_name: 'Moved', public: false }),
    signature: signMigration({ from: from.address, to: to.address }, witness.privateKey),
    old_identity: from.address,
    remote_photo_path: undefined,
  }
}

/** A public post with a text. */
export function postBy(
  author: Pick<FakePerson, 'address'>,
  fields: Partial<StatusMessageEntity> = {},
): StatusMessageEntity {
  return {
    type: 'status_message',
    author: author.address,
    guid: newGuid(),
    created_at: new Date('2024-05-06T07:08:09Z'),
    public: true,
    text: 'Hello',
    photos: [],
    ...fields,
  }
}

export function photoBy(author: Pick<FakePerson, 'address'>, fields: Partial<PhotoEntity> = {}): PhotoEntity {
  return {
    type: 'photo',
    guid: newGuid(),
    author: author.address,
    public: true,
    created_at: new Date('2024-05-06T07:08:09Z'),
    remote_photo_path: 'https://pictures.example/up/',
    remote_photo_name: 'one.jpg',
    ...fields,
  }
}

export function pollWith(...answers: readonly string[]) {
  const pollAnswers = answers.map((answer) => ({ type: 'poll_answer' as const, guid: newGuid(), answer }))
  return { type: 'poll' as const, guid: newGuid(), question: 'Nice?', poll_answers: pollAnswers }
}

export function reshareBy(author: Pick<FakePerson, 'address'>, root?: HasGuid & { readonly author: string }) {
  const entity: ReshareEntity = {
    type: 'reshare',
    author: author.address,
    guid: newGuid(),
    created_at: new Date('2024-05-07T07:08:09Z'),
    ...(root && { root_author: root.author, root_guid: root.guid }),
  }
  return entity
}

/** A comment with the signature of its author. */
export function commentBy(author: FakePerson, post: HasGuid, fields: Partial<CommentEntity> = {}): CommentEntity {
  return signedBy(author, {
    type: 'comment',
    author: author.address,
    guid: newGuid(),
    parent_guid: post.guid,
    text: 'Well said',
    created_at: new Date('2024-05-08T07:08:09Z'),
    ...fields,
  })
}

/** A like with the signature of its author. */
export function likeBy(author: FakePerson, target: HasGuid, fields: Partial<LikeEntity> = {}): LikeEntity {
  return signedBy(author, {
    type: 'like',
    author: author.address,
    guid: newGuid(),
    parent_guid: target.guid,
    parent_type: 'Post',
    positive: true,
    ...fields,
  })
}

/** A vote with the signature of its author. */
export function voteBy(author: FakePerson, poll: HasGuid, answer: HasGuid): PollParticipationEntity {
  return signedBy(author, {
    type: 'poll_participation',
    author: author.address,
    guid: newGuid(),
    parent_guid: poll.guid,
    poll_answer_guid: answer.guid,
  })
}

export function participationBy(author: Pick<FakePerson, 'address'>, post: HasGuid): ParticipationEntity {
  return {
    type: 'participation',
    author: author.address,
    guid: newGuid(),
    parent_guid: post.guid,
    parent_type: 'Post',
  }
}
