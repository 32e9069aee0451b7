import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'
import { requireComment, requirePost } from '../posts/post-access.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'

type ReportRefusal = 'reason_invalid' | 'already_reported'

/** Reports a post or a comment to the moderators of this pod. The report is not sent to other pods. */
export async function createReport(
  pod: Pod,
  viewer: Viewer,
  input: { readonly postGuid: string; readonly commentGuid?: string | undefined; readonly reason: string },
): Promise<void> {
  const post = await requirePost(pod, viewer, input.postGuid)
  const { commentGuid } = input
  const comment = commentGuid === undefined ? undefined : await requireComment(pod, post, commentGuid)
  const reason = input.reason.trim()
  if (reason === '') throw refusal('reason_invalid', 'A report needs a reason.')
  const fault = findTextFault(reason)
  if (fault !== undefined) throw refusal('reason_invalid', `The reason ${fault}.`)

  const subject = comment ? { commentId: comment.id } : { postId: post.id }
  const made = await pod
    .db('reports')
    .insert({ userId: viewer.userId, ...subject, reason, createdAt: pod.now() })
    .onConflict()
    .ignore()
    .returning('id')
  if (made.length === 0) throw refusal('already_reported', 'You have already reported this.')
}

function refusal(reason: ReportRefusal, message: string): Refusal<ReportRefusal> {
  return new Refusal(reason, message)
}
