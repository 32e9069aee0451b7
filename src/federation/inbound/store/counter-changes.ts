import type { AnswerCount, CountByGuid, Counts, PostCount } from '../../../persistence/inbound/raise-counts.js'
import type { StoredRecord } from '../batch.js'

type Mutable<Row> = { -readonly [Column in keyof Row]: Row[Column] }

/** The counters that stored comments, likes, votes and reshares raise, by parent. */
export function countChanges(records: readonly StoredRecord[], now: Date): Counts {
  const posts = new Map<string, Mutable<PostCount>>()
  const comments = new Map<string, Mutable<CountByGuid>>()
  const answers = new Map<string, Mutable<AnswerCount>>()
  for (const {
    message: { entity },
  } of records) {
    switch (entity.type) {
      case 'comment': {
        const post = postCountIn(posts, entity.parent_guid)
        post.comments += 1
        post.latest = now
        break
      }
      case 'like':
        // Negative likes are stored but not counted.
        if (!entity.positive) break
        if (entity.parent_type === 'Post') postCountIn(posts, entity.parent_guid).likes += 1
        else commentCountIn(comments, entity.parent_guid).count += 1
        break
      case 'poll_participation':
        answerCountIn(answers, entity.parent_guid, entity.poll_answer_guid).count += 1
        break
      case 'reshare':
        if (entity.root_guid !== undefined) postCountIn(posts, entity.root_guid).reshares += 1
        break
      case 'status_message':
      case 'photo':
      case 'participation':
      case 'conversation':
      case 'message':
      case 'retraction':
      case 'profile':
      case 'contact':
      case 'account_deletion':
      case 'account_migration':
        break
      default:
        entity satisfies never
    }
  }
  return { posts: [...posts.values()], comments: [...comments.values()], answers: [...answers.values()] }
}

function postCountIn(posts: Map<string, Mutable<PostCount>>, guid: string): Mutable<PostCount> {
  const postChange = posts.get(guid)
  if (postChange !== undefined) return postChange
  const newEntry = { guid, comments: 0, likes: 0, reshares: 0, latest: undefined }
  posts.set(guid, newEntry)
  return newEntry
}

function commentCountIn(comments: Map<string, Mutable<CountByGuid>>, guid: string): Mutable<CountByGuid> {
  const commentChange = comments.get(guid)
  if (commentChange !== undefined) return commentChange
  const newEntry = { guid, count: 0 }
  comments.set(guid, newEntry)
  return newEntry
}

function answerCountIn(answers: Map<string, Mutable<AnswerCount>>, poll: string, guid: string): Mutable<AnswerCount> {
  const key = `${poll} ${guid}`
  const answerChange = answers.get(key)
  if (answerChange !== undefined) return answerChange
  const newEntry = { poll, guid, count: 0 }
  answers.set(key, newEntry)
  return newEntry
}
