import type { AnswerCount, CountByGuid, Counts, PostCount } from '../../../persistence/inbound/raise-counts.js'
import type { StoredRecord } from '../batch.js'

type Mutable<Row> = { -readonly [Column in keyof Row]: Row[Column] }

/** What was stored, counted for what it stands under: comments, likes, votes and reshares. */
export function countsOf(records: readonly StoredRecord[], now: Date): Counts {
  const posts = new Map<string, Mutable<PostCount>>()
  const comments = new Map<string, Mutable<CountByGuid>>()
  const answers = new Map<string, Mutable<AnswerCount>>()
  for (const {
    arrival: { entity },
  } of records) {
    switch (entity.type) {
      case 'comment': {
        const post = postIn(posts, entity.parent_guid)
        post.comments += 1
        post.latest = now
        break
      }
      case 'like':
        // Those that are not positive count nowhere.
        if (!entity.positive) break
        if (entity.parent_type === 'Post') postIn(posts, entity.parent_guid).likes += 1
        else partIn(comments, entity.parent_guid).count += 1
        break
      case 'poll_participation':
        answerIn(answers, entity.parent_guid, entity.poll_answer_guid).count += 1
        break
      case 'reshare':
        if (entity.root_guid !== undefined) postIn(posts, entity.root_guid).reshares += 1
        break
    }
  }
  return { posts: [...posts.values()], comments: [...comments.values()], answers: [...answers.values()] }
}

function postIn(posts: Map<string, Mutable<PostCount>>, guid: string): Mutable<PostCount> {
  const known = posts.get(guid)
  if (known !== undefined) return known
  const fresh = { guid, comments: 0, likes: 0, reshares: 0, latest: undefined }
  posts.set(guid, fresh)
  return fresh
}

function partIn(parts: Map<string, Mutable<CountByGuid>>, guid: string): Mutable<CountByGuid> {
  const known = parts.get(guid)
  if (known !== undefined) return known
  const fresh = { guid, count: 0 }
  parts.set(guid, fresh)
  return fresh
}

function answerIn(answers: Map<string, Mutable<AnswerCount>>, poll: string, guid: string): Mutable<AnswerCount> {
  const name = `${poll} ${guid}`
  const known = answers.get(name)
  if (known !== undefined) return known
  const fresh = { poll, guid, count: 0 }
  answers.set(name, fresh)
  return fresh
}
