import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Poll, PollAnswer, PollParticipation } from '../../persistence/models/poll.js'
import { Post } from '../../persistence/models/post.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { newGuid } from '../new-guid.js'
import { signOwnRelayable } from '../outbound/relayable-signature.js'
import { isViewerBlockedBy, requirePost } from '../posts/post-access.js'
import { Refusal } from '../refusals.js'
import { participateInPost } from './participations.js'

/** Votes in a poll, once per person. A vote on a reshare counts in the poll of its root and subscribes the viewer to the reshare. */
export async function voteInPoll(
  services: Services,
  viewer: Viewer,
  input: { readonly postGuid: string; readonly answerId: number },
): Promise<PollParticipation> {
  const post = await requirePost(services, viewer, input.postGuid)
  const root = post.type === 'Reshare' ? await Post.findRoot(services.db, post) : post
  const poll = root && (await Poll.query(services.db).findOne({ postId: root.id }))
  const answer = poll && (await PollAnswer.query(services.db).findOne({ id: input.answerId, pollId: poll.id }))
  if (!root || !poll || !answer) throw new Refusal('answer_not_found', 'This post has no poll answer with this id.')
  if (await isViewerBlockedBy(services, root.authorId, viewer)) {
    throw new Refusal('blocked_by_author', 'The author of this poll has blocked you.')
  }

  const guid = newGuid()
  const signature = await signOwnRelayable(services, viewer, root, (author) => ({
    type: 'poll_participation',
    author,
    guid,
    parent_guid: poll.guid,
    poll_answer_guid: answer.guid,
  }))
  try {
    return await inRequestTransaction(services, async (transaction) => {
      await Post.lock(transaction, post.id, root.id)
      const row = {
        guid,
        pollId: poll.id,
        pollAnswerId: answer.id,
        authorId: viewer.personId,
        createdAt: services.now(),
      }
      const participation = await PollParticipation.query(transaction)
        .insert({ ...row, ...signature })
        .returning('*')
      await participateInPost(services, transaction, viewer, post)
      await PollAnswer.query(transaction)
        .findById(answer.id)
        .patch({ voteCount: transaction.raw('vote_count + 1') })
      await enqueueJobs(services, transaction, [
        newDispatchJob(viewer.personId, { record: 'poll_participation', guid }),
      ])
      return participation
    })
  } catch (error) {
    if (!isUniqueViolation(error, 'poll_participations_poll_id_author_id_key')) throw error
    throw new Refusal('already_voted', 'You have already voted in this poll.')
  }
}
