import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { sendOut } from '../domain/outgoing.js'
import type { Work } from '../jobs/outbox.js'
import { inTransaction } from '../persistence/errors.js'
import type { Person } from '../persistence/models/person.js'
import { Post } from '../persistence/models/post.js'
import { User } from '../persistence/models/user.js'
import type { Pod } from '../pod.js'

/**
 * Asks the author of a public post, in the name of one account, for what will be said under it. It is no participation of that
 * person, so it is not stored as one here; a repeat has the same guid and sends nothing.
 */
export async function participate(pod: Pod, work: Work<{ readonly postGuid: string }>): Promise<void> {
  await inTransaction(pod.db, async (transaction) => {
    await work.finish(transaction)
    const post = await Post.query(transaction).findOne({ guid: work.data.postGuid }).withGraphFetched('author')
    const speaker = await speakerOf(pod, transaction)
    if (!post?.public || !post.author?.podId || speaker === undefined) return
    const guid = guidOf(speaker, post)
    const entity = {
      type: 'participation',
      author: speaker.address,
      guid,
      parent_guid: post.guid,
      parent_type: 'Post',
    } as const
    await sendOut(
      pod,
      transaction,
      { record: 'participation', guid, verb: 'create', senderId: speaker.id, public: false, entity },
      { of: 'people', personIds: [post.authorId] },
    )
  })
}

/** The account that the settings name, else the first administrator, else the first account. */
async function speakerOf({ config }: Pod, transaction: Knex.Transaction): Promise<Person | undefined> {
  const user = await User.query(transaction)
    .whereNull('closedAt')
    .whereNull('lockedAt')
    .orderByRaw(`username = ? desc, role is not distinct from 'admin' desc, id`, [config.podminAccount ?? ''])
    .withGraphFetched('person')
    .first()
  return user?.person
}

function guidOf(speaker: Person, post: Post): string {
  return createHash('sha256').update(`participation ${speaker.guid} ${post.guid}`).digest('hex').slice(0, 32)
}
