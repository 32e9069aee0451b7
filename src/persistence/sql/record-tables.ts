import type { RecordKind } from '../../protocol/entities/registry.js'

/** The rows of one kind of record. SQL names columns with their table. */
interface RecordTable {
  readonly table: string
  /** SQL: the id of the author. */
  readonly author: string
  /** SQL: the id of the post that a row belongs to; undefined: it belongs to none. */
  readonly post: string | undefined
  /** Joins from a post to the rows that are deleted with it, and of which messages may be on their way to other pods. */
  readonly belowPost: readonly PostJoin[]
  /** SQL: the text that mentions people; undefined: there is none. */
  readonly mentioningText: string | undefined
  /** The column with the time of storing, in tables with a `trace_id`. */
  readonly tracedAt: string | undefined
  /**
   * When the account of the author closes (empty-people.ts), or only with the person, in chunks: `destroyed_in_chunks` with corrections of
   * counters, `deleted_in_chunks` without. `with_parent`: it has no author of its own.
   */
  readonly whenAuthorIsDeleted: 'deleted_on_close' | 'destroyed_in_chunks' | 'deleted_in_chunks' | 'with_parent'
}

interface PostJoin {
  readonly from: string
  readonly post: string
}

/**
 * Tables of the records. Complete tables also say what happens to their rows: `destroy-entities.ts`, `delete-posts.ts`,
 * `move-person.ts`, `content-of-person.ts` and `prune-posts.ts`.
 */
export const RECORD_TABLES = {
  post: {
    table: 'posts',
    author: 'posts.author_id',
    post: undefined,
    belowPost: [],
    mentioningText: 'posts.text',
    tracedAt: 'stored_at',
    whenAuthorIsDeleted: 'deleted_on_close',
  },
  photo: {
    table: 'photos',
    author: 'photos.author_id',
    post: 'photos.post_id',
    belowPost: [{ from: 'photos', post: 'photos.post_id' }],
    mentioningText: undefined,
    tracedAt: undefined,
    whenAuthorIsDeleted: 'deleted_on_close',
  },
  comment: {
    table: 'comments',
    author: 'comments.author_id',
    post: 'comments.post_id',
    belowPost: [{ from: 'comments', post: 'comments.post_id' }],
    mentioningText: 'comments.text',
    tracedAt: 'created_at',
    whenAuthorIsDeleted: 'destroyed_in_chunks',
  },
  like: {
    table: 'likes',
    author: 'likes.author_id',
    post: 'coalesce(likes.post_id, (select comments.post_id from comments where comments.id = likes.comment_id))',
    belowPost: [
      { from: 'likes', post: 'likes.post_id' },
      { from: 'likes join comments on comments.id = likes.comment_id', post: 'comments.post_id' },
    ],
    mentioningText: undefined,
    tracedAt: 'created_at',
    whenAuthorIsDeleted: 'destroyed_in_chunks',
  },
  poll_participation: {
    table: 'poll_participations',
    author: 'poll_participations.author_id',
    post: '(select polls.post_id from polls where polls.id = poll_participations.poll_id)',
    belowPost: [
      { from: 'poll_participations join polls on polls.id = poll_participations.poll_id', post: 'polls.post_id' },
    ],
    mentioningText: undefined,
    tracedAt: 'created_at',
    whenAuthorIsDeleted: 'destroyed_in_chunks',
  },
  participation: {
    table: 'participations',
    author: 'participations.author_id',
    post: 'participations.post_id',
    belowPost: [{ from: 'participations', post: 'participations.post_id' }],
    mentioningText: undefined,
    tracedAt: undefined,
    whenAuthorIsDeleted: 'deleted_on_close',
  },
  poll: {
    table: 'polls',
    author: '(select posts.author_id from posts where posts.id = polls.post_id)',
    post: 'polls.post_id',
    belowPost: [], // sent only with its post
    mentioningText: undefined,
    tracedAt: undefined,
    whenAuthorIsDeleted: 'with_parent',
  },
  conversation: {
    table: 'conversations',
    author: 'conversations.author_id',
    post: undefined,
    belowPost: [],
    mentioningText: undefined,
    tracedAt: undefined,
    whenAuthorIsDeleted: 'destroyed_in_chunks',
  },
  message: {
    table: 'messages',
    author: 'messages.author_id',
    post: undefined,
    belowPost: [],
    mentioningText: undefined,
    tracedAt: undefined,
    whenAuthorIsDeleted: 'deleted_in_chunks',
  },
} as const satisfies Readonly<Record<RecordKind, RecordTable>>

type Tables = typeof RECORD_TABLES

/** The kinds whose rows are deleted with a post. */
export type KindBelowPost = {
  [Kind in RecordKind]: Tables[Kind]['belowPost'] extends readonly [] ? never : Kind
}[RecordKind]

export const RECORD_KINDS = Object.keys(RECORD_TABLES) as readonly RecordKind[] // the keys of the table

export const KINDS_BELOW_POST = RECORD_KINDS.filter(
  (kind) => RECORD_TABLES[kind].belowPost.length > 0,
) as readonly KindBelowPost[]

/** The joins from a post to all rows of a kind below it. */
export function joinsToPost(kind: KindBelowPost): readonly PostJoin[] {
  return RECORD_TABLES[kind].belowPost
}
