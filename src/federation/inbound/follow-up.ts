import type { Knex } from 'knex'
import { newAnnouncementJobs } from '../../domain/notifications/announcements.js'
import { notifyAbout } from '../../domain/notifications/notifications.js'
import { readMentionedAddresses } from '../../domain/posts/texts.js'
import { participateJob } from '../../jobs/definitions.js'
import { enqueueJobs, type NewJob, newJob } from '../../jobs/outbox/outbox.js'
import type { Pod } from '../../pod/pod.js'
import { fetchesLeftOf, lookForLinked, textOf } from '../discovery/find-links.js'
import { isElsewhere } from '../discovery/pod-location.js'
import { hasPodminAccount } from '../outbound/podmin-account.js'
import { lookForMentioned } from './attach-mentions.js'
import type { RejectedMessage, StoredRecord } from './batch.js'
import { turnAway } from './retract-ignored-relayables.js'

type Sent = StoredRecord['arrival']

/**
 * What stored records cause, written with them: who lives here is notified, who is mentioned and what is linked to is looked
 * for, and their authors are asked for what will be said under their posts. Some of what was refused has an answer.
 */
export async function followUp(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
  rejected: readonly RejectedMessage[],
): Promise<void> {
  const notifications = await notify(pod, transaction, records)
  await lookForMentioned(pod, transaction, records)
  await lookForLinked(
    pod,
    transaction,
    records.map(({ arrival: { entity, message } }) => ({
      text: textOf(entity),
      depth: message.wanted?.depth ?? 0,
      fetchesLeft: fetchesLeftOf(message),
    })),
  )
  const posts = await postsForPeople(pod, transaction, records)
  await enqueueJobs(pod, transaction, [
    ...newAnnouncementJobs({ notifications, posts: posts.map(({ id }) => id) }),
    ...participation(posts),
  ])
  await turnAway(pod, transaction, rejected)
}

async function notify(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<readonly number[]> {
  const idsOf = (isCause: (arrival: Sent) => boolean) =>
    records.filter(({ arrival }) => isCause(arrival)).map(({ id }) => id)
  const causes = {
    // Of a post, only those who are named in it are told.
    posts: idsOf(({ entity }) => entity.type === 'status_message' && readMentionedAddresses(entity.text).length > 0),
    comments: idsOf(({ entity }) => entity.type === 'comment'),
    // Of a like of a post, only its author; whose the liked comment is, nobody has asked yet.
    likes: idsOf(
      ({ entity, parentIsLocal = false }) =>
        entity.type === 'like' && entity.positive && (parentIsLocal || entity.parent_type === 'Comment'),
    ),
    reshares: idsOf(({ entity }) => entity.type === 'reshare' && isOfOurs(pod, entity.root_author)),
  }
  return notifyAbout(transaction, causes, pod.now())
}

interface PublicPost {
  readonly id: number
  readonly guid: string
}

/** What is public, where anybody lives here; what is private is announced where it is shown to somebody. */
async function postsForPeople(
  pod: Pod,
  transaction: Knex.Transaction,
  records: readonly StoredRecord[],
): Promise<readonly PublicPost[]> {
  const posts = records.flatMap(({ id, arrival: { entity } }) =>
    entity.type === 'reshare' || (entity.type === 'status_message' && entity.public) ? [{ id, guid: entity.guid }] : [],
  )
  return posts.length > 0 && (await hasPodminAccount(pod, transaction)) ? posts : []
}

function isOfOurs(pod: Pod, address: string | undefined): boolean {
  return address !== undefined && !isElsewhere(pod, address)
}

/** Only who takes part hears of comments and likes under a post of somebody who has no contact here. */
function participation(posts: readonly PublicPost[]): readonly NewJob[] {
  return posts.length === 0 ? [] : [newJob(participateJob, { postGuids: posts.map(({ guid }) => guid) })]
}
