import { createHash } from 'node:crypto'
import { sendLetters } from '../domain/outgoing.js'
import type { Work } from '../jobs/outbox.js'
import { inTransaction } from '../persistence/errors.js'
import type { Person } from '../persistence/models/person.js'
import { Post } from '../persistence/models/post.js'
import type { Pod } from '../pod.js'
import { findSpeaker } from './speaker.js'

/**
 * Asks the authors of public posts, in the name of one account, for what will be said under them. It is no participation of
 * that person, so it is not stored as one here; a repeat has the same guid and sends nothing.
 */
export async function participate(pod: Pod, work: Work<{ readonly postGuids: readonly string[] }>): Promise<void> {
  await inTransaction(pod.db, async (transaction) => {
    await work.finish(transaction)
    const speaker = await findSpeaker(pod, transaction)
    if (speaker === undefined) return
    const posts = await Post.query(transaction)
      .joinRelated('author')
      .whereIn('posts.guid', [...work.data.postGuids])
      .where('posts.public', true)
      .whereNotNull('author.podId')
      .select('posts.guid', 'posts.authorId')
    await sendLetters(
      pod,
      transaction,
      posts.map((post) => letterAbout(post, speaker)),
    )
  })
}

function letterAbout(post: Pick<Post, 'guid' | 'authorId'>, speaker: Person) {
  const guid = createHash('sha256').update(`participation ${speaker.guid} ${post.guid}`).digest('hex').slice(0, 32)
  return {
    record: 'participation',
    guid,
    verb: 'create',
    senderId: speaker.id,
    public: false,
    entity: { type: 'participation', author: speaker.address, guid, parent_guid: post.guid, parent_type: 'Post' },
    personId: post.authorId,
  } as const
}
