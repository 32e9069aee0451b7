import { Comment } from '../../persistence/models/comment.js'
import { Like } from '../../persistence/models/like.js'
import { Participation } from '../../persistence/models/participation.js'
import { PollParticipation } from '../../persistence/models/poll.js'
import type { Entity, RelayableKind } from '../../protocol/entities/registry.js'
import type {
  CommentEntity,
  LikeEntity,
  ParticipationEntity,
  PollParticipationEntity,
} from '../../protocol/entities/relayables.js'
import type { Services } from '../../services/services.js'

/** A comment, like or vote as it is sent; one without a signature cannot be relayed. */
export type OutgoingRelayable = Extract<Entity, { readonly type: RelayableKind }>

/** The entity with exactly the elements that its author has signed; undefined: it is deleted. */
export async function relayableEntity(
  source: Pick<Services, 'db'>,
  kind: RelayableKind,
  guid: string,
): Promise<OutgoingRelayable | undefined> {
  return (await relayableEntities(source, kind, [guid]))[0]
}

/** The entities of one kind that still exist, in any order. One statement for any number. */
export async function relayableEntities(
  source: Pick<Services, 'db'>,
  kind: RelayableKind,
  guids: readonly string[],
): Promise<readonly OutgoingRelayable[]> {
  return findEntities[kind](source, guids)
}

export async function commentEntities(
  { db }: Pick<Services, 'db'>,
  guids: readonly string[],
): Promise<readonly CommentEntity[]> {
  const comments = await Comment.query(db)
    .whereIn('comments.guid', [...guids])
    .joinRelated('[author, post]')
    .select('comments.*', 'author.address as author', 'post.guid as parentGuid')
    .castTo<readonly WithReferences<Comment>[]>()
  return comments.map((comment) => ({
    type: 'comment',
    author: comment.author,
    guid: comment.guid,
    parent_guid: comment.parentGuid,
    text: comment.text,
    created_at: comment.createdAt,
    ...signatureOf(comment),
  }))
}

export async function likeEntities(
  { db }: Pick<Services, 'db'>,
  guids: readonly string[],
): Promise<readonly LikeEntity[]> {
  const likes = await Like.query(db)
    .whereIn('likes.guid', [...guids])
    .joinRelated('author')
    .leftJoin('posts', 'posts.id', 'likes.postId')
    .leftJoin('comments', 'comments.id', 'likes.commentId')
    .select('likes.*', 'author.address as author')
    .select(db.raw('coalesce(posts.guid, comments.guid) as parent_guid'))
    .castTo<readonly WithReferences<Like>[]>()
  return likes.map((like) => ({
    type: 'like',
    author: like.author,
    guid: like.guid,
    parent_guid: like.parentGuid,
    parent_type: like.postId === null ? 'Comment' : 'Post',
    positive: like.positive,
    ...signatureOf(like),
  }))
}

export async function voteEntities(
  { db }: Pick<Services, 'db'>,
  guids: readonly string[],
): Promise<readonly PollParticipationEntity[]> {
  const votes = await PollParticipation.query(db)
    .whereIn('poll_participations.guid', [...guids])
    .join('people', 'people.id', 'poll_participations.authorId')
    .join('polls', 'polls.id', 'poll_participations.pollId')
    .join('poll_answers', 'poll_answers.id', 'poll_participations.pollAnswerId')
    .select('poll_participations.*', 'people.address as author')
    .select('polls.guid as parentGuid', 'poll_answers.guid as answerGuid')
    .castTo<readonly (WithReferences<PollParticipation> & { readonly answerGuid: string })[]>()
  return votes.map((vote) => ({
    type: 'poll_participation',
    author: vote.author,
    guid: vote.guid,
    parent_guid: vote.parentGuid,
    poll_answer_guid: vote.answerGuid,
    ...signatureOf(vote),
  }))
}

const findEntities: {
  readonly [Kind in RelayableKind]: (
    source: Pick<Services, 'db'>,
    guids: readonly string[],
  ) => Promise<readonly OutgoingRelayable[]>
} = {
  comment: commentEntities,
  like: likeEntities,
  poll_participation: voteEntities,
}

/** A participation is not a relayable: it has no signature but that of its envelope. */
export async function participationEntity(
  { db }: Pick<Services, 'db'>,
  guid: string,
): Promise<ParticipationEntity | undefined> {
  const participation = await Participation.query(db)
    .findOne({ 'participations.guid': guid })
    .joinRelated('author')
    .join('posts', 'posts.id', 'participations.postId')
    .select('author.address as author', 'posts.guid as parentGuid')
    .castTo<Pick<WithReferences<Participation>, 'author' | 'parentGuid'> | undefined>()
  return (
    participation && {
      type: 'participation',
      author: participation.author,
      guid,
      parent_guid: participation.parentGuid,
      parent_type: 'Post',
    }
  )
}

/** A row with the address of its author and the guid of its parent, as the entity needs them. */
type WithReferences<Row> = Omit<Row, 'author'> & { readonly author: string; readonly parentGuid: string }

function signatureOf({ authorSignature, signedElements }: Pick<Comment, 'authorSignature' | 'signedElements'>) {
  return {
    ...(authorSignature !== null && { author_signature: authorSignature }),
    ...(signedElements !== null && { elements: signedElements }),
  }
}
